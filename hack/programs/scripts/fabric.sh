# Runs fi_pingpong: fabric.sh WORDS... With "both" as the first word it runs a server and a client. The symbolic link is
# usually created by the installation of a package.
set -e
ln -sf ../root/usr/lib/libpsm1/libpsm_infinipath.so.1.16 libpsm_infinipath.so.1
export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$PWD"
[ "$1" = both ] || exec fi_pingpong "$@"
shift
fi_pingpong "$@" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until fi_pingpong "$@" localhost; do # the server may not listen yet
	kill -0 $server
	sleep 0.1
done
wait $server
