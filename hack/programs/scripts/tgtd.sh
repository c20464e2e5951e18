# Runs tgtd with a disk of 64 MiB over iSER for all initiators, until SIGTERM. It is killed, since its regular exit
# crashes after RDMA connections (a jump to address 0).
set -e
export TGT_IPC_SOCKET="$PWD/tgt.ipc"
target="--lld iser --mode target --tid 1"
truncate --size 64M disk
tgtd -f --iser pool_sz_mb=64 &
pid=$!
trap 'kill -KILL $pid' TERM
until tgtadm $target --op new -T iqn.2026-11.roced:disk 2>/dev/null; do
	sleep 0.1
done
tgtadm --lld iser --mode logicalunit --op new --tid 1 --lun 1 -b "$PWD/disk"
tgtadm $target --op bind -Q iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test
tgtadm $target --op bind -I ALL
wait $pid
