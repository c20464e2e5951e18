#!/bin/sh
# Runs the steps of the GitHub action as user nobody in a clean Debian, with a locally built release. Run it as root, by
# "make test-action". The Debian is a temporary root folder in new mount, process and network namespaces.
set -eu
cd "$(dirname "$0")/../.."
image=${XDG_CACHE_HOME:-$HOME/.cache}/roced/containers/debian.tar # shared with hack/containers/test.sh

case ${1:-} in
'')
	go run ./hack/tools test-action
	if [ ! -f "$image" ]; then
		mkdir -p "$(dirname "$image")"
		mmdebstrap --quiet --format=tar --variant=minbase --include=perftest,ibverbs-utils,rdmacm-utils bookworm "$image.new"
		mv "$image.new" "$image"
	fi
	dir=$(mktemp -d)
	trap 'rm -rf --one-file-system "$dir"' EXIT
	deploy/ci/release.sh "$dir/release"
	mkdir "$dir/root"
	tar -C "$dir/root" --exclude='./dev/*' -xf "$image"
	unshare --mount --pid --net --fork --kill-child "$0" inside "$dir"
	;;
inside)
	dir=$2 root=$2/root
	mount --make-rprivate /
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=755 dev "$root/dev"
	mknod -m 666 "$root/dev/null" c 1 3
	mknod -m 666 "$root/dev/zero" c 1 5
	mknod -m 666 "$root/dev/urandom" c 1 9
	ip link set lo up
	echo "127.0.0.1 localhost" >"$root/etc/hosts" # as in containers
	mkdir -m 777 "$root/work" "$root/work/temp"
	cp -r "$dir/release" "$root/work/release"
	mkdir -p "$root/work/roced/deploy" "$root/work/roced/.github"
	cp -r deploy/ci "$root/work/roced/deploy/"
	cp -r .github/actions "$root/work/roced/.github/"
	chmod -R a+rX "$root/work/roced" "$root/work/release"
	exec chroot --userspec=65534:65534 "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/work/temp sh /work/roced/deploy/ci/clean.sh job
	;;
job)
	# The variables that a runner sets for a job, and the defaults of the action's inputs.
	export RUNNER_TEMP=/work/temp GITHUB_ACTION_PATH=/work/roced/.github/actions/roced
	export GITHUB_ENV=$RUNNER_TEMP/env GITHUB_PATH=$RUNNER_TEMP/path GITHUB_OUTPUT=$RUNNER_TEMP/output
	began=$(date +%s%N)
	# The script of the action's step is at the end of the file, indented by eight spaces.
	sed '1,/^ *run: |$/d; s/^        //' "$GITHUB_ACTION_PATH/action.yml" >"$RUNNER_TEMP/step.sh"
	ROCED_URL=file:///work/release ROCED_VERSION=0.0.0 ROCED_MODE=loopback ROCED_INTERFACE='' sh -e "$RUNNER_TEMP/step.sh"

	# The next steps run with the variables that the action has exported.
	while read -r variable; do export "$variable"; done <"$GITHUB_ENV"
	PATH=$(cat "$GITHUB_PATH"):$PATH
	ibv_devinfo | grep 'hca_id:.*loop'
	ib_write_bw -x 0 >/dev/null &
	sleep 1
	ib_write_bw -x 0 localhost | grep '^ *65536'
	echo "$((($(date +%s%N) - began) / 1000000)) ms from the start of the action to the figure, including a sleep of one second"
	wait $!
	cat "$GITHUB_OUTPUT"
	grep -A 2 '^devices<<END' "$GITHUB_OUTPUT" | grep -q '^loop .*ACTIVE'
	grep -A 1 '^addresses<<END' "$GITHUB_OUTPUT" | grep -q '^INDEX.*GID'
	roced exec -- ibv_rc_pingpong -g 0 >/dev/null &
	sleep 1
	roced exec -- ibv_rc_pingpong -g 0 localhost
	wait $!
	"$ROCED_DIR/stop.sh" >"$RUNNER_TEMP/said"
	test -s "$ROCED_DIR/packets.pcapng"
	echo passed
	;;
esac
