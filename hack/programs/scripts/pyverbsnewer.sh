# rdma-core's own tests of another release of Debian's, with its libc and its Python. They ask iproute2's rdma which
# interface a device has. Here it says what it says where the kernel has no device; then they look in /sys/class. They
# count on processes that are forked, which Python 3.14 does when told to.
set -e
root=$PWD/../root$1
roced=$PWD/../roced clib=$PWD/../clib
device=$(ibv_devices | awk '$1 == "loop" || $1 == "eth0" { print $1 }')
mkdir -p "$1/bin"
cd "$1"
cp -r "$root/usr/share/doc/rdma-core/tests" .
gunzip --force --quiet tests/*.gz
printf '#!/bin/sh\necho "[]"\n' >bin/rdma
chmod 755 bin/rdma
mkdir -p site
echo 'import multiprocessing; multiprocessing.set_start_method("fork")' >site/sitecustomize.py
export PATH=$PWD/bin:$PATH PYTHONPATH=$PWD/site PYTHONDONTWRITEBYTECODE=1
libraries=$(echo "$root"/usr/lib/*-linux-gnu)
exec "$roced" exec --sysfs --libraries "$clib" -- "$libraries"/ld-linux-*.so.* --library-path "$clib:$libraries" \
	"$root/usr/bin/python$2" tests/run_tests.py -v --dev "$device"
