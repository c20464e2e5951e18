#!/bin/sh
# Tests unmodified Debian programs in podman containers, in all setups of docs/CONTAINERS.md. Run it as root by "make
# containers". podman, its networks and its storage use namespaces and a folder that the test removes.
set -eu
cd "$(dirname "$0")/../.."
image=${XDG_CACHE_HOME:-$HOME/.cache}/roced/containers/debian.tar

if [ "${1:-}" != inside ]; then
	go run ./hack/tools containers
	if [ ! -f "$image" ]; then
		mkdir -p "$(dirname "$image")"
		mmdebstrap --quiet --format=tar --variant=minbase --include=perftest,ibverbs-utils,rdmacm-utils bookworm "$image.new"
		mv "$image.new" "$image"
	fi
	exec unshare --net --mount "$0" inside
fi

dir=$(mktemp -d)
user=root
# become COMMAND: executes a command as $user in place of this shell, with a clean environment.
become() {
	exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups \
		env -i PATH="$PATH" HOME="$dir/$user" TMPDIR="$dir/$user" "$@"
}
engine() (
	become podman --root "$dir/$user/storage" --runroot "$dir/$user/run" --cgroup-manager=cgroupfs --storage-driver=vfs \
		--events-backend=file --runtime "$(command -v runc)" "$@"
)
service=
stop() {
	[ -z "$service" ] || { kill "$service" && wait "$service"; } || true
	service=
}
end() {
	for user in nobody root; do engine rm --force --all --time 1 >/dev/null 2>&1 || true; done
	# Rootless podman leaves a process that keeps its user namespace.
	pause=$(cat "$dir"/nobody/podman-run-*/libpod/tmp/pause.pid 2>/dev/null) && kill "$pause"
	stop
	umount /etc/subuid /etc/subgid
	rm -rf "$dir"
}
trap end EXIT
fail() { echo "FAIL  $*"; engine logs a >"$dir/a.log" 2>&1 || true; tail -n 20 "$dir"/*.log; exit 1; }
ip link set lo up
chmod 755 "$dir"
mkdir -p "$dir/roced/bin" "$dir/roced/lib" "$dir/root" "$dir/nobody" /etc/cdi
chown nobody "$dir/nobody"
mount --make-rshared /
mount -t tmpfs cdi /etc/cdi
echo nobody:100000:65536 >"$dir/subid"
for file in /etc/subuid /etc/subgid; do mount --bind "$dir/subid" $file; done
cp roced "$dir/roced/bin/"
cp clib/lib*.so.1 "$dir/roced/lib/"
engine import --quiet - rdma <"$image" >/dev/null

# run NAME [OPTION...] -- COMMAND: runs a container of the test's image.
limits="--ulimit nofile=1024:4096 --ulimit nproc=1024:1024"
run() {
	name=$1
	shift
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	engine run --name "$name" $limits --volume "$dir/roced:/opt/roced:ro" $options localhost/rdma "$@"
}
address() { engine inspect "$1" --format '{{.NetworkSettings.IPAddress}}'; }
# pair NAME COMMAND [OPTION...]: runs a server and a client of a command, each in a container with these options. DOOR
# in an option is replaced by a and b.
pair() {
	what=$1 command=$2
	shift 2
	run a --detach $(echo "$*" | sed 's/DOOR/a/g') -- sh -c "$command" >/dev/null
	sleep 3
	to=$(address a)
	run b $(echo "$*" | sed 's/DOOR/b/g') -- sh -c "$command ${to:-127.0.0.1}" >"$dir/client.log" 2>&1 || { engine logs a >"$dir/server.log" 2>&1; fail "$what"; }
	grep -E '^ *65536' "$dir/client.log" >"$dir/rate" || fail "$what: no rate"
	engine rm --force --time 1 a b >/dev/null
	echo "ok    $what: $(awk '{ print $4 }' "$dir/rate") MB/s"
}
serve() {
	become "$dir/roced/bin/roced" run --socket "$dir/service/roced.sock" "$@" >"$dir/service.log" 2>&1 &
	service=$!
	until "$dir/roced/bin/roced" show dev --service "$dir/service/roced.sock" >/dev/null 2>&1; do
		kill -0 $service || fail "the service does not start"
		sleep 0.1
	done
	for door in a b; do "$dir/roced/bin/roced" socket add $door --service "$dir/service/roced.sock" >/dev/null; done
	"$dir/roced/bin/roced" cdi generate --service "$dir/service/roced.sock" --libraries "$dir/roced/lib" a b >/etc/cdi/roced.json
}

run a --network=none -- /opt/roced/bin/roced exec -- sh -c 'ib_write_bw -F >/dev/null & sleep 1; ib_write_bw -F localhost' >"$dir/one.log" 2>&1 || fail "one container"
echo "ok    one container, without a network: $(awk '/^ *65536/ { print $4 }' "$dir/one.log") MB/s"
engine rm a >/dev/null

pair "the engine's own network, a service of each" "/opt/roced/bin/roced exec --network udp -- ib_write_bw -F"

mkdir "$dir/service"
serve --loopback
pair "the host's service, in memory, by CDI" "ib_write_bw -F" --device=roced.dev/verbs=DOOR --network=host

clients() { "$dir/roced/bin/roced" show client --json --service "$dir/service/roced.sock" | grep -o '"pid"' | wc -l; }
before=$(clients)
run a --detach --device=roced.dev/verbs=a --network=host -- ibv_rc_pingpong -g 0 >/dev/null
tries=0
until [ "$(clients)" -gt "$before" ]; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || fail "the container's program did not become a client"
	sleep 0.1
done
kill -9 "$(engine inspect a --format '{{.State.Pid}}')"
tries=0
while [ "$(clients)" -gt "$before" ]; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || fail "a killed container's program is still a client"
	sleep 0.1
done
engine rm --force a >/dev/null
echo "ok    a killed container's client and objects are removed"
stop

mkdir "$dir/state"
for network in xdp udp; do
	cat >"$dir/roced.toml" <<-TOML
		state_dir = "$dir/state"
		socket.path = "$dir/service/roced.sock"
		[namespaces]
		device = "net0"
		network = "$network"
	TOML
	serve --config "$dir/roced.toml"
	pair "a card of the host's service in each container's network, over $network" "ib_write_bw -F" --device=roced.dev/verbs=DOOR
	stop
done

user=nobody
rm -rf "$dir/service"
mkdir "$dir/service"
chown nobody "$dir/service"
engine import --quiet - rdma <"$image" >/dev/null
serve --loopback
run net --detach --network=none -- sleep 1000 >/dev/null
pair "rootless, the user's own service, by CDI" "ib_write_bw -F" --device=roced.dev/verbs=DOOR --network=container:net
