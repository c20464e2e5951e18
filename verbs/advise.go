package verbs

import "fmt"

// Calls that libraries make and that have nothing to do here. They check what they are given, and say the truth.

// AdviseMR prepares parts of memory regions for the card (ibv_advise_mr). The card reads and writes the program's own
// pages, which the kernel brings when they are touched: so it checks that the list names regions of the context, that
// AdvicePrefetchWrite may write, and does no more. ErrInvalid for what a request could not use, where the kernel
// says EFAULT or ENOENT.
func (p *PD) AdviseMR(advice MRAdvice, flags MRAdviceFlags, list []SGE) error {
	if p == nil {
		return fmt.Errorf("advise MR: %w", errNil)
	}
	if err := p.ctx.gone(); err != nil {
		return fmt.Errorf("advise MR: %w", err)
	}
	if advice > AdvicePrefetchNoFault || flags&^AdviceFlush != 0 {
		return fmt.Errorf("advise MR: %w: advice %d, flags %#x", ErrInvalid, advice, flags)
	}
	for _, sge := range list {
		if _, err := p.ctx.inlineBytes(sge); err != nil {
			return fmt.Errorf("advise MR: %w", err)
		}
	}
	return nil
}

// MRAdvice is what AdviseMR is to do (ibv_advise_mr_advice): AdvicePrefetch for example.
type MRAdvice uint32

// The advices.
const (
	AdvicePrefetch        MRAdvice = 0 // the card will read
	AdvicePrefetchWrite   MRAdvice = 1 // it will write
	AdvicePrefetchNoFault MRAdvice = 2 // without bringing what is not there
)

// MRAdviceFlags say how (ib_uverbs_advise_mr_flag): AdviceFlush or 0.
type MRAdviceFlags uint32

// AdviceFlush has AdviseMR return when it is done, which it always does.
const AdviceFlush MRAdviceFlags = 1 << 0

// ForkStatus is whether a program that forks keeps its regions (ibv_fork_status): ForkUnneeded.
type ForkStatus int

// The statuses.
const (
	ForkDisabled ForkStatus = 0
	ForkEnabled  ForkStatus = 1
	ForkUnneeded ForkStatus = 2
)

// ForkInit prepares for fork(2) (ibv_fork_init). There is nothing to do: a card has no pages pinned that a fork could
// take away. A Go program does not fork without exec; over the service the session stays the parent's.
func ForkInit() error { return nil }

// IsForkInitialized says that nothing has to be (ibv_is_fork_initialized).
func IsForkInitialized() ForkStatus { return ForkUnneeded }

// QueryDataInOrder says in what order the bytes of a message come into memory, as bits (ibv_query_qp_data_in_order):
// 0, no promise. Packets of a message are written in their order, and the bytes of a packet in any. Who polls memory
// instead of the CQ has to use atomics.
func (q *QP) QueryDataInOrder(Opcode) uint32 { return 0 }

// ODPCaps say what regions on demand can do (ibv_odp_caps).
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

// ODPCaps are the card's (odp_caps of ibv_device_attr_ex). All registration here is what AccessOnDemand asks for:
// nothing is pinned, and the kernel brings a page when the card touches it.
func (c *Context) ODPCaps() ODPCaps {
	return ODPCaps{
		General: ODPSupport,
		RC:      ODPSend | ODPRecv | ODPWrite | ODPRead | ODPAtomic | ODPSRQRecv,
		UC:      ODPSend | ODPRecv | ODPWrite | ODPSRQRecv,
		UD:      ODPSend | ODPRecv | ODPSRQRecv,
	}
}
