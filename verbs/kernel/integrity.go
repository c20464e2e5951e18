// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
)

// The signatures of regions of AllocIntegrityMR, by the kernel's names.
type (
	// SigAttrs describes the signatures in memory and on the wire, and the checks (ib_sig_attrs).
	SigAttrs = ib.SigAttrs
	// SigDomain is a signature's layout in memory or on the wire (ib_sig_domain).
	SigDomain = ib.SigDomain
	// T10DIFDomain describes the T10-DIF fields of a domain (ib_t10_dif_domain).
	T10DIFDomain = ib.T10DIFDomain
	// SigErr is a block whose check failed (ib_sig_err).
	SigErr = ib.SigErr
)

// The types of signatures, the guards of T10-DIF, and the parts of a field.
const (
	SigTypeNone   = ib.SigTypeNone
	SigTypeT10DIF = ib.SigTypeT10DIF
	SigTypeCRC32  = ib.SigTypeCRC32
	SigTypeCRC32C = ib.SigTypeCRC32C
	SigTypeXOR    = ib.SigTypeXOR

	T10DIFCRC  = ib.T10DIFCRC
	T10DIFCSUM = ib.T10DIFCSUM

	SigBadGuard  = ib.SigBadGuard
	SigBadRefTag = ib.SigBadRefTag
	SigBadAppTag = ib.SigBadAppTag
)

// AllocIntegrityMR is AllocFastMR for a region with signatures (ib_alloc_mr_integrity), of up to the given pieces of
// data and of fields. WRRegMRIntegrity registers it with RegMR.Sig. From then on its addresses count the bytes of the
// wire: reads of the region, by sends and by peers, return blocks and fields as on the wire, and writes supply them in
// that form. The card inserts, strips, passes and checks fields while it copies.
//
// Accesses should be sequential: written bytes must continue where the last access ended, or begin a block, else the
// access fails. Data and fields are whole blocks, and if memory and wire have blocks of different lengths, the longer
// length is a multiple of the shorter. Datagrams cannot use the region, and windows cannot be bound to it.
func AllocIntegrityMR(p *verbs.PD, data, meta int) (*verbs.MR, error) {
	return AllocFastMR(p, MRTypeIntegrity, max(data, meta))
}

// MapSGPI is MapSG for a region with signatures: it maps a list of data and, unless the fields are between its blocks
// or only on the wire, a list of fields (ib_map_mr_sg_pi). It returns the number of entries of each that fit.
func MapSGPI(m *verbs.MR, data []SG, dataOffset int, meta []SG, metaOffset int) (dataEntries, metaEntries int, err error) {
	if m == nil {
		return 0, 0, fmt.Errorf("map SG with signatures: %w", errNil)
	}
	f := in.Fast(m)
	if f == nil || f.Kind != MRTypeIntegrity || len(meta) > 0 && (metaOffset < 0 || metaOffset > meta[0].length) {
		return 0, 0, fmt.Errorf("map SG with signatures: %w: a region of AllocIntegrityMR and an offset in the list of fields are needed", verbs.ErrInvalid)
	}
	if dataEntries, _, err = MapSG(m, data, dataOffset, 0); err != nil {
		return 0, 0, err
	}
	f.Lock()
	defer f.Unlock()
	fields := inside.FastMR{Most: f.Most, List: f.List[f.Most*ring.RegEntryLen:]}
	metaEntries = mapPieces(&fields, meta, metaOffset)
	f.Meta = fields.Count
	return dataEntries, metaEntries, nil
}

// MRCheckSigStatus selects the signatures in CheckMRStatus (IB_MR_CHECK_SIG_STATUS).
const MRCheckSigStatus = 1

// MRStatus is the result of CheckMRStatus (ib_mr_status): a bit for each check that failed.
type MRStatus struct {
	FailStatus uint32
	SigErr     SigErr // with MRCheckSigStatus in FailStatus
}

// CheckMRStatus returns and clears the status of the region's signatures (ib_check_mr_status): the first block whose check
// failed since the region was registered or CheckMRStatus was called. A failed check ends no request: a program calls
// CheckMRStatus after its requests have completed. ErrInvalid for other checks, and for a region without signatures.
func CheckMRStatus(m *verbs.MR, checks uint32) (MRStatus, error) {
	if m == nil {
		return MRStatus{}, fmt.Errorf("check MR status: %w", errNil)
	}
	if checks != MRCheckSigStatus {
		return MRStatus{}, fmt.Errorf("check MR status: %w: checks 0x%x; the only valid one is MRCheckSigStatus", verbs.ErrInvalid, checks)
	}
	session, handle := in.MR(m)
	grant, err := provider.Do(session, provider.CheckMRStatus, provider.CheckMRStatusRequest{MR: handle})
	if err != nil || !grant.Failed {
		return MRStatus{}, err
	}
	return MRStatus{FailStatus: MRCheckSigStatus, SigErr: grant.Err}, nil
}
