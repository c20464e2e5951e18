#!/bin/sh
# Tests start.sh and stop.sh with a locally built release and an empty environment: deploy/ci/test.sh, after "make build
# clib".
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
deploy/ci/release.sh "$dir/release"

# clean [NAME=VALUE...] COMMAND: runs a command with a clean environment and these variables.
clean() { env -i PATH=/usr/bin:/bin ROCED_DIR="$dir/job" ROCED_URL="file://$dir/release" ROCED_VERSION=0.0.0 "$@"; }

clean deploy/ci/start.sh >"$dir/env"
clean $(cat "$dir/env") ibv_devinfo | grep 'hca_id:.*loop'
clean $(cat "$dir/env") "$dir/job/bin/roced" exec -- sh -c 'ibv_rc_pingpong -g 0 >/dev/null & sleep 1; ibv_rc_pingpong -g 0 localhost' | grep 'Mbit/sec'
clean "$dir/job/stop.sh" >"$dir/said"
test -s "$dir/job/packets.pcapng"

if clean ROCED_URL=https://roced.example.org deploy/ci/start.sh >/dev/null 2>"$dir/said"; then
	echo "the placeholder URL was accepted"
	exit 1
fi
grep -q 'is a placeholder' "$dir/said"

sed -i 's/^[^ ]*/0/' "$dir/release/0.0.0/SHA256SUMS"
if clean ROCED_DIR="$dir/other" deploy/ci/start.sh >/dev/null 2>&1; then
	echo "a release with a wrong checksum was started"
	exit 1
fi
echo passed
