#!/bin/sh
# Starts roced in a CI job: unpacks a release, verifies its checksum, starts the service and waits until it is ready.
# Environment: ROCED_URL (URL of the releases' folder, BASE of docs/INSTALL.md, also file://), ROCED_VERSION, ROCED_MODE
# (loopback, udp, interface), ROCED_INTERFACE, ROCED_DIR (a folder to create). Prints variables for the job, one
# NAME=VALUE per line.
set -eu

dir=${ROCED_DIR:?} mode=${ROCED_MODE:-loopback}
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "roced: unsupported processor $(uname -m)" >&2; exit 1 ;;
esac
case ${ROCED_URL:?} in
https://roced.example.org*)
	echo "roced: $ROCED_URL is a placeholder: set url (ROCED_URL) to the output folder of make release" >&2
	exit 1
	;;
esac
name=roced_${ROCED_VERSION:?}_linux_$arch.tar.gz

fetch() {
	case $ROCED_URL in
	file://*) cp "${ROCED_URL#file://}/$ROCED_VERSION/$1" "$dir/" ;;
	*) curl -fsSL --retry 3 -o "$dir/$1" "$ROCED_URL/$ROCED_VERSION/$1" ;;
	esac
}

mkdir -p "$dir"
fetch "$name"
fetch SHA256SUMS
(cd "$dir" && grep " [ *]*$name\$" SHA256SUMS | sha256sum -c - >&2) || { echo "roced: $name does not match SHA256SUMS" >&2; exit 1; }
tar -xzf "$dir/$name" -C "$dir" --strip-components=1
cp "$(dirname "$0")/stop.sh" "$dir/"

socket=$dir/roced.sock
case $mode in
loopback) set -- --loopback --capture "$dir/packets.pcapng" ;;
udp) set -- --device "${ROCED_INTERFACE:?mode udp needs the name of an interface}" --network udp ;;
interface) set -- --device "${ROCED_INTERFACE:?mode interface needs the name of an interface}" ;;
*) echo "roced: unknown mode $mode: use loopback, udp or interface" >&2; exit 1 ;;
esac
nohup "$dir/bin/roced" run --socket "$socket" "$@" >"$dir/roced.log" 2>&1 &
echo $! >"$dir/pid"

tries=0
until "$dir/bin/roced" show dev --socket "$socket" >"$dir/devices" 2>/dev/null; do
	tries=$((tries + 1))
	if [ $tries -gt 300 ] || ! kill -0 "$(cat "$dir/pid")" 2>/dev/null; then
		cat "$dir/roced.log" >&2
		exit 1
	fi
	sleep 0.1
done
"$dir/bin/roced" show gid --socket "$socket" >"$dir/addresses"
echo "ROCED_DIR=$dir"
echo "ROCED_SOCKET=$socket"
echo "ROCED_LIBRARIES=$dir/lib"
# glibc's loader uses the first of the three folders. musl's loader uses the last one, since ; is no separator for it.
echo "LD_LIBRARY_PATH=$dir/lib;$dir/lib:$dir/lib/musl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
