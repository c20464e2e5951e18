// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// AdviseMR prepares parts of memory regions for the card (ibv_advise_mr). The card accesses the program's own pages,
// which the kernel pages in on access. Therefore AdviseMR only checks that the list contains memory of regions of the
// context. ErrInvalid for an SGE that a request could not use, where the kernel returns EFAULT or ENOENT.
func AdviseMR(p *verbs.PD, advice MRAdvice, flags MRAdviceFlags, list []verbs.SGE) error {
	if p == nil {
		return fmt.Errorf("advise MR: %w", errNil)
	}
	session := in.Provider(p.Context())
	select {
	case <-session.Done():
		return fmt.Errorf("advise MR: %w", session.Err())
	default:
	}
	if advice > AdvicePrefetchNoFault || flags&^AdviceFlush != 0 {
		return fmt.Errorf("advise MR: %w: advice %d, flags %#x", verbs.ErrInvalid, advice, flags)
	}
	for _, sge := range list {
		if _, err := in.Bytes(p.Context(), sge); err != nil {
			return fmt.Errorf("advise MR: %w", err)
		}
	}
	return nil
}

// MRAdvice is the kind of preparation (ibv_advise_mr_advice), for example AdvicePrefetch.
type MRAdvice uint32

// The advices.
const (
	AdvicePrefetch        MRAdvice = 0 // for reading by the card
	AdvicePrefetchWrite   MRAdvice = 1 // for writing by the card
	AdvicePrefetchNoFault MRAdvice = 2 // without paging in absent pages
)

// MRAdviceFlags modifies an advice (ib_uverbs_advise_mr_flag): AdviceFlush or 0.
type MRAdviceFlags uint32

// AdviceFlush makes AdviseMR return when the advice is complete, which it always does.
const AdviceFlush MRAdviceFlags = 1 << 0

// ODPCaps are the capabilities of on-demand regions (ibv_odp_caps).
type ODPCaps struct {
	General ODPGeneralCaps
	// The operations that may use such regions, by service.
	RC, UC, UD ODPTransportCaps
}

// ODPGeneralCaps is ODPSupport, or 0 (ibv_odp_general_caps).
type ODPGeneralCaps uint64

// ODPSupport: regions may be AccessOnDemand. Implicit regions of a whole address space are not supported.
const ODPSupport ODPGeneralCaps = 1 << 0

// ODPTransportCaps are operations (ibv_odp_transport_cap_bits), for example ODPSend.
type ODPTransportCaps uint32

// The operations.
const (
	ODPSend    ODPTransportCaps = 1 << 0
	ODPRecv    ODPTransportCaps = 1 << 1
	ODPWrite   ODPTransportCaps = 1 << 2
	ODPRead    ODPTransportCaps = 1 << 3
	ODPAtomic  ODPTransportCaps = 1 << 4
	ODPSRQRecv ODPTransportCaps = 1 << 5
)

// QueryODPCaps returns the on-demand paging capabilities of the card (odp_caps of ibv_device_attr_ex). All regions are
// on demand: they are not pinned, and the kernel pages in a page when the card accesses it.
func QueryODPCaps(*verbs.Context) ODPCaps {
	return ODPCaps{
		General: ODPSupport,
		RC:      ODPSend | ODPRecv | ODPWrite | ODPRead | ODPAtomic | ODPSRQRecv,
		UC:      ODPSend | ODPRecv | ODPWrite | ODPSRQRecv,
		UD:      ODPSend | ODPRecv | ODPSRQRecv,
	}
}

// ForkStatus reports whether a program that forks keeps its regions (ibv_fork_status): ForkUnneeded.
type ForkStatus int

// The statuses.
const (
	ForkDisabled ForkStatus = 0
	ForkEnabled  ForkStatus = 1
	ForkUnneeded ForkStatus = 2
)

// ForkInit prepares for fork(2) (ibv_fork_init). It has no effect: a card pins no pages that a fork could affect. A Go
// program does not fork without exec; over the service the session remains the parent's.
func ForkInit() error { return nil }

// IsForkInitialized returns ForkUnneeded (ibv_is_fork_initialized).
func IsForkInitialized() ForkStatus { return ForkUnneeded }
