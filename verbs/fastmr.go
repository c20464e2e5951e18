// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// Length returns the number of bytes of the region; for a fast region, of the memory mapped to it (MapSG of package
// kernel).
func (m *MR) Length() uint64 {
	if m == nil {
		return 0
	}
	if f := m.fast; f != nil {
		f.Lock()
		defer f.Unlock()
		return f.Length
	}
	return uint64(len(m.Bytes()))
}

// RegMR is a fast registration (ib_reg_wr) of the memory that MapSG of package kernel has mapped. The low 8 bits of its
// key may be changed by UpdateFastRegKey. It waits for all earlier requests, and later requests use the region as
// registered. It fails with WCMWBindErr if the region is already valid, belongs to another PD than the queue pair, or
// consists of memory that is not mapped, or not in a direction that the access flags permit.
type RegMR struct {
	MR     *MR
	Key    RKey // MR.RKey
	Access AccessFlags
	Sig    *ib.SigAttrs // for WRRegMRIntegrity
}

func (r *RegMR) check(pd *PD, signed bool) error {
	switch {
	case r == nil || r.MR == nil || r.MR.fast == nil:
		return fmt.Errorf("%w: a fast registration needs SendWR.Reg with a region of kernel.AllocFastMR", ErrInvalid)
	case signed && (r.Sig == nil || r.MR.fast.Kind != ib.MRTypeIntegrity):
		return fmt.Errorf("%w: a fast registration with signatures needs RegMR.Sig and a region of kernel.AllocIntegrityMR", ErrInvalid)
	case r.MR.ctx != pd.ctx:
		return fmt.Errorf("%w: the region belongs to another context", ErrInvalid)
	case (r.Key^RKey(r.MR.lkey))&^keyMask != 0:
		return fmt.Errorf("%w: key 0x%x for the region with key 0x%x; only the low 8 bits may differ", ErrInvalid, uint32(r.Key), uint32(r.MR.lkey))
	case r.MR.Length() == 0:
		return fmt.Errorf("%w: the region has no memory; call kernel.MapSG first", ErrInvalid)
	}
	return nil
}

// put writes the registration into the request's slot.
func (r *RegMR) put(data []byte, signed bool) {
	f := r.MR.fast
	f.Lock()
	defer f.Unlock()
	if signed {
		ring.PutSigAttrs(f.List[2*f.Most*ring.RegEntryLen:], r.Sig, uint32(f.Meta)) // after the lists
	}
	ring.PutReg(data, ring.Reg{Length: f.Length, Access: r.Access, Count: uint32(f.Count)})
}
