# fi_pingpong: fabric.sh WORDS... With "both" as the first word, its server and its client on one host. The link is one
# that installing a package makes.
set -e
ln -sf ../root/usr/lib/libpsm1/libpsm_infinipath.so.1.16 libpsm_infinipath.so.1
export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$PWD"
[ "$1" = both ] || exec fi_pingpong "$@"
shift
fi_pingpong "$@" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until fi_pingpong "$@" localhost; do # it may not listen yet
	kill -0 $server
	sleep 0.1
done
wait $server
