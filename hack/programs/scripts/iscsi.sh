# Runs the read and write tests of iscsi-test-cu over iSER: iscsi.sh ADDRESS. It omits Read10 and Write10, since one of
# their tests has more outstanding requests than libiscsi supports, and crashes it.
set -e
for family in SCSI.Read6 SCSI.Read12 SCSI.Read16 SCSI.Write12 SCSI.Write16 SCSI.WriteVerify16 SCSI.Verify16 SCSI.OrWrite SCSI.ReadCapacity16; do
	iscsi-test-cu --dataloss --test=$family "iser://$1/iqn.2026-11.roced:disk/1"
done
