# Functions for the cases, which run in the guest under dash. $network is memory, udp or xdp.

# install unpacks the release's packages.
install() {
	[ ! -e /usr/bin/roced ] || return 0
	for package in /host/*.deb; do dpkg-deb -x "$package" / || return; done
}

# user runs a command as an ordinary user, with the usual limit of locked memory.
user() { su -s /bin/sh nobody -c "ulimit -l 8192; cd /tmp; $*"; }

# at runs a command as an ordinary user on a side of the network (server or client).
at() {
	side=$1 socket=/tmp/$network-$1.sock
	shift
	case $network in
	memory) user ROCED_SOCKET=/tmp/memory-server.sock "$*" ;;
	*) ip netns exec "$network-$side" su -s /bin/sh nobody -c "ulimit -l 8192; cd /tmp; ROCED_SOCKET=$socket $*" ;;
	esac
}

# wired creates two namespaces that are connected by a veth pair, unless they exist.
wired() {
	[ ! -e "/run/netns/$network-client" ] || return 0
	for side in server client; do ip netns add "$network-$side"; done
	ip link add eth0 netns "$network-server" type veth peer name eth0 netns "$network-client"
	number=1
	for side in server client; do
		ip -n "$network-$side" address add 10.77.0.$number/24 dev eth0
		ip -n "$network-$side" link set lo up
		ip -n "$network-$side" link set eth0 up
		number=$((number + 1))
	done
}

# serve starts the service of a side and waits until it responds.
serve() {
	side=$1 socket=/tmp/$network-$1.sock log=/tmp/$network-$1.log
	shift
	"$@" --socket "$socket" --mode 0666 >"$log" 2>&1 &
	service=$!
	until roced show dev --socket "$socket" >/dev/null 2>&1; do
		kill -0 "$service" || { echo "the service ended:"; cat "$log"; return 1; }
		sleep 0.2
	done
}

# services starts the network's services that do not respond.
services() {
	sides="server client" name=10.77.0.1 server=10.77.0.1 client=10.77.0.2
	case $network in
	memory) sides=server name=localhost server=10.77.5.1 client=10.77.5.2 ;;
	*) wired || return ;;
	esac
	for each in $sides; do
		! roced show dev --socket "/tmp/$network-$each.sock" >/dev/null 2>&1 || continue
		case $network in
		memory) serve server user exec roced run --loopback --host server=$server --host client=$client || return ;;
		udp) serve "$each" at "$each" exec roced run --device eth0 --network udp || return ;;
		xdp) serve "$each" ip netns exec "xdp-$each" roced run --device eth0 --network xdp || return ;;
		esac
	done
}

# early matches the errors of clients before their server listens.
early='couldn.t connect|connection refused|could not connect|unable to connect|failed to connect|connect error|reject|unexpected cm event|event: .*, error: (1|8|28)'

# pair runs a server and a client. It repeats the client until the server listens.
pair() {
	at server roced exec -- "$1" >/tmp/server.log 2>&1 &
	running=$! tries=0
	until at client roced exec -- "$2" >/tmp/client.log 2>&1; do
		tries=$((tries + 1))
		if [ $tries = 100 ] || ! kill -0 $running 2>/dev/null || ! grep -qiE "$early" /tmp/client.log; then
			killall -q "${1%% *}"
			said
			echo "the client failed"
			return 1
		fi
		sleep 0.3
	done
	wait $running || { said; echo "the server failed"; return 1; }
	said
}

# group runs a receiver and a sender. It repeats the sender until the receiver has joined and received all messages.
group() {
	at server roced exec -- "$1" >/tmp/server.log 2>&1 &
	running=$!
	while kill -0 $running 2>/dev/null; do
		at client roced exec -- "$2" >/tmp/client.log 2>&1 || { killall -q "${1%% *}"; said; echo "the sender failed"; return 1; }
	done
	wait $running || { said; echo "the receiver failed"; return 1; }
	said
}

said() { echo "server:"; cat /tmp/server.log; echo "client:"; cat /tmp/client.log; }
