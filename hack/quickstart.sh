#!/bin/sh
# Runs the unchanged quick starts of README.md as root, in new namespaces. It requires the tools of "make build clib",
# iproute2 and perftest. It omits the first block, which hack/fresh.sh runs.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != inside ]; then
	exec unshare -n -m "$0" inside
fi
mount -t tmpfs none /run
mkdir /run/netns
ip link set lo up

# block prints a block of commands of the section by its number.
block() {
	sed -n '/^## Quick start/,/^## Status/p' README.md |
		awk -v want="$1" '/^    / { if (!in_block) n++; in_block = 1; if (n == want) print substr($0, 5); next } { in_block = 0 }'
}

echo "== programs in C"
block 2 | sh -eux | tee /run/out
grep -q '#bytes' /run/out

echo "== Go"
block 3 | sh -eux | tee /run/out
grep -q -- '--- PASS: Example' /run/out

echo "== two hosts"
ip netns add first
ip netns add second
ip -n first link add eth0 type veth peer name eth0 netns second
ip -n first address add 10.0.0.1/24 dev eth0
ip -n second address add 10.0.0.2/24 dev eth0
for host in first second; do
	ip -n $host link set lo up
	ip -n $host link set eth0 up
done
# command prints the command of the line with a comment.
command() { block 4 | grep "# $1" | sed 's/ *#.*//'; }
# shellcheck disable=SC2046 # the words of a command
{
	ip netns exec first $(command reports)
	ip netns exec first $(command 'on the first host') &
	server=$!
	sleep 1
	ip netns exec second $(command 'on the second host')
	wait $server
	ip netns exec first $(command 'the service') &
	service=$!
	sleep 1
	ip netns exec first ./roced show dev | grep eth0
	kill -INT $service
	wait $service
}
echo "README's quick starts: ok"
