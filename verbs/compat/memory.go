package compat

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// AdviseMR prepares parts of memory regions for the card (ibv_advise_mr). The card reads and writes the program's own
// pages, which the kernel brings when they are touched. So AdviseMR only checks that the list names memory of regions
// of the context. ErrInvalid for an SGE that a request could not use, where the kernel returns EFAULT or ENOENT.
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

// MRAdvice is the kind of preparation (ibv_advise_mr_advice): AdvicePrefetch for example.
type MRAdvice uint32

// The advices.
const (
	AdvicePrefetch        MRAdvice = 0 // the card will read
	AdvicePrefetchWrite   MRAdvice = 1 // it will write
	AdvicePrefetchNoFault MRAdvice = 2 // without bringing absent pages
)

// MRAdviceFlags modifies an advice (ib_uverbs_advise_mr_flag): AdviceFlush or 0.
type MRAdviceFlags uint32

// AdviceFlush makes AdviseMR return when the advice is carried out, which it always does.
const AdviceFlush MRAdviceFlags = 1 << 0

// ODPCaps lists what regions on demand can do (ibv_odp_caps).
type ODPCaps struct {
	General ODPGeneralCaps
	// By service: which operations may use such regions.
	RC, UC, UD ODPTransportCaps
}

// ODPGeneralCaps is ODPSupport, or 0 (ibv_odp_general_caps).
type ODPGeneralCaps uint64

// ODPSupport: regions may be AccessOnDemand. There are no implicit regions, of a whole address space.
const ODPSupport ODPGeneralCaps = 1 << 0

// ODPTransportCaps are operations (ibv_odp_transport_cap_bits): ODPSend for example.
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

// QueryODPCaps returns the card's (odp_caps of ibv_device_attr_ex). All regions here are what AccessOnDemand requests:
// nothing is pinned, and the kernel brings a page when the card touches it.
func QueryODPCaps(*verbs.Context) ODPCaps {
	return ODPCaps{
		General: ODPSupport,
		RC:      ODPSend | ODPRecv | ODPWrite | ODPRead | ODPAtomic | ODPSRQRecv,
		UC:      ODPSend | ODPRecv | ODPWrite | ODPSRQRecv,
		UD:      ODPSend | ODPRecv | ODPSRQRecv,
	}
}

// ForkStatus tells whether a program that forks keeps its regions (ibv_fork_status): ForkUnneeded.
type ForkStatus int

// The statuses.
const (
	ForkDisabled ForkStatus = 0
	ForkEnabled  ForkStatus = 1
	ForkUnneeded ForkStatus = 2
)

// ForkInit prepares for fork(2) (ibv_fork_init). There is nothing to do: a card pins no pages that a fork could take
// away. A Go program does not fork without exec; over the service the session stays the parent's.
func ForkInit() error { return nil }

// IsForkInitialized returns ForkUnneeded (ibv_is_fork_initialized).
func IsForkInitialized() ForkStatus { return ForkUnneeded }
