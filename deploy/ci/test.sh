#!/bin/sh
# Runs start.sh and stop.sh with a release made here, with an empty environment: deploy/ci/test.sh, after make build clib.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
arch=$(go env GOARCH)
name=roced_0.0.0_linux_$arch # also the folder in the archive, as hack/package has it
mkdir -p "$dir/$name/bin" "$dir/$name/lib" "$dir/release"
cp roced "$dir/$name/bin/"
cp clib/libibverbs.so.1 clib/librdmacm.so.1 "$dir/$name/lib/"
tar -C "$dir" -czf "$dir/release/$name.tar.gz" "$name"
(cd "$dir/release" && sha256sum ./*.tar.gz | sed 's|\./||' >SHA256SUMS)

clean() { env -i PATH=/usr/bin:/bin ROCED_DIR="$dir/job" ROCED_URL="file://$dir/release" ROCED_VERSION=0.0.0 "$@"; }

clean deploy/ci/start.sh >"$dir/env"
clean $(cat "$dir/env") ibv_devinfo | grep 'hca_id:.*loop'
clean $(cat "$dir/env") "$dir/job/bin/roced" exec -- sh -c 'ibv_rc_pingpong -g 0 >/dev/null & sleep 1; ibv_rc_pingpong -g 0 localhost' | grep 'Mbit/sec'
clean "$dir/job/stop.sh" >"$dir/said"
test -s "$dir/job/packets.pcapng"

echo "0  $(cd "$dir/release" && ls ./*.tar.gz | sed 's|\./||')" >"$dir/release/SHA256SUMS"
if clean ROCED_DIR="$dir/other" deploy/ci/start.sh >/dev/null 2>&1; then
	echo "a release whose sum is wrong was started"
	exit 1
fi
echo passed
