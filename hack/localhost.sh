#!/bin/sh
# Runs servers and clients that meet by an address of this machine below "roced exec", in a new network namespace. It
# requires the tools of "make build clib", iproute2, rdmacm-utils and perftest, and runs as root.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != inside ]; then
	exec unshare -n "$0" inside
fi
ip link set lo up
ip address add 192.0.2.1/32 dev lo
ip address add 2001:db8::1/128 dev lo

# attempt runs a server and a client. It fails if one of them does. udpong's server has no end.
attempt() {
	case $1 in udpong*) end=kill ;; *) end=wait ;; esac
	timeout 60 ./roced exec --network loopback -- sh -c "
		$1 & server=\$!
		sleep $3
		$2 && $end \$server" </dev/null >/dev/null 2>&1
}

# meets runs a server and its client with each address. A server on a busy machine may need longer to start.
meets() {
	for address in $1; do
		server=$(echo "$2" | sed "s/ADDRESS/$address/") client=$(echo "$3" | sed "s/ADDRESS/$address/")
		attempt "$server" "$client" 1 || attempt "$server" "$client" 5 || attempt "$server" "$client" 10 || { echo "failed: $client"; exit 1; }
		echo "ok    $client"
	done
}

four='127.0.0.1 localhost 192.0.2.1'
meets "$four ::1 2001:db8::1" 'rping -s -a ADDRESS -C 3' 'rping -c -a ADDRESS -C 3'
meets "$four" 'rping -s -C 3' 'rping -c -a ADDRESS -C 3'
meets '::1 2001:db8::1' 'rping -s -a :: -C 3' 'rping -c -a ADDRESS -C 3'
meets "$four" 'rdma_server' 'rdma_client -s ADDRESS'
meets "$four" 'ucmatose' 'ucmatose -s ADDRESS'
meets "$four" 'udaddy' 'udaddy -s ADDRESS'
meets "$four" 'rstream -S 1000' 'rstream -S 1000 -s ADDRESS'
meets '127.0.0.1 ::1 192.0.2.1' 'udpong -b ADDRESS -S 1000 -C 500' 'udpong -s ADDRESS -S 1000 -C 500'
meets "$four" 'ib_send_lat -R' 'ib_send_lat -R ADDRESS'
meets "$four" 'ib_write_bw' 'ib_write_bw ADDRESS'
