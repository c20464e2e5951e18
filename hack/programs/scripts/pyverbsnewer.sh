# Runs rdma-core's Python tests of another Debian release with its libc and Python. The tests query the interface of a
# device with iproute2's rdma. The replacement prints an empty list, as without kernel devices, so that they use
# /sys/class. The tests require forked processes, which Python 3.14 must be configured to use.
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
