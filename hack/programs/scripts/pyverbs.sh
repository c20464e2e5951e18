# Runs rdma-core's Python tests, which the package contains as documentation. They find devices in /sys/class.
set -e
cp -r ../root/usr/share/doc/rdma-core/tests .
gunzip --force --quiet tests/*.gz
device=$(ibv_devices | awk '$1 == "loop" || $1 == "eth0" { print $1 }')
export PYTHONPATH=$PWD/../root/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1
exec ../roced exec --sysfs --libraries ../clib -- /usr/bin/python3 tests/run_tests.py -v --dev "$device"
