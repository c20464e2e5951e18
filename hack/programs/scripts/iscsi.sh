# iscsi-test-cu's tests of reading and writing, over iser: iscsi.sh ADDRESS. Left out are Read10 and Write10, of which
# one test has more requests at once than libiscsi has room for, and crashes it.
set -e
for family in SCSI.Read6 SCSI.Read12 SCSI.Read16 SCSI.Write12 SCSI.Write16 SCSI.WriteVerify16 SCSI.Verify16 SCSI.OrWrite SCSI.ReadCapacity16; do
	iscsi-test-cu --dataloss --test=$family "iser://$1/iqn.2026-11.roced:disk/1"
done
