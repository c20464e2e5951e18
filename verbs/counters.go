package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Counters counts packets of queue pairs, and completions of CQs (ibv_counters). It has MaxCounters counters, which
// begin at 0. It counts as a region in limits.
type Counters struct {
	ctx    *Context
	handle provider.Handle
}

// CounterDescription is what a counter counts (ibv_counter_description): CounterPackets for example.
type CounterDescription = ib.CounterDescription

// What can be counted. The first two are libibverbs'.
const (
	CounterPackets     = ib.CounterPackets     // delivered to the queue pair
	CounterBytes       = ib.CounterBytes       // their payload
	CounterSentPackets = ib.CounterSentPackets // that it has sent, acknowledgements and what was sent again among them
	CounterSentBytes   = ib.CounterSentBytes   // their payload
	CounterCompletions = ib.CounterCompletions // that a CQ has been given, of requests that were carried out
	CounterErrors      = ib.CounterErrors      // of others; see AttachCQ
)

// CreateCounters makes counters (ibv_create_counters). ErrLimit beyond 1024 objects of them.
func (c *Context) CreateCounters() (*Counters, error) {
	if c == nil {
		return nil, fmt.Errorf("create counters: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.CreateCounters, provider.None{})
	if err != nil {
		return nil, fmt.Errorf("create counters: %w", err)
	}
	return &Counters{c, grant.Counters}, nil
}

// AttachQP has the counter of an index count something of a queue pair from now on
// (ibv_attach_counters_point_flow, where the flow is all packets of the queue pair). Several queue pairs may be
// attached to one index, which is their sum then; they stay attached until Close, and what was counted stays when they
// are closed. ErrInvalid for an index from MaxCounters on, ErrUnsupported for an XRC target, ErrLimit after 64.
func (k *Counters) AttachQP(qp *QP, what CounterDescription, index int) error {
	if k == nil || qp == nil {
		return fmt.Errorf("attach counters: %w", errNil)
	}
	if qp.ctx != k.ctx {
		return fmt.Errorf("attach counters: %w: the QP belongs to another context", ErrInvalid)
	}
	if what >= CounterCompletions {
		return fmt.Errorf("attach counters: %w: %d is not counted of a QP", ErrInvalid, what)
	}
	return k.attach(qp.handle, what, index)
}

// AttachCQ has the counter of an index count completions of a CQ from now on, CounterCompletions or CounterErrors
// (ibv_comp_cntr). A request without a completion does not count. What AttachQP says of the rest holds here.
func (k *Counters) AttachCQ(cq *CQ, what CounterDescription, index int) error {
	if k == nil || cq == nil {
		return fmt.Errorf("attach counters: %w", errNil)
	}
	if cq.ctx != k.ctx {
		return fmt.Errorf("attach counters: %w: the CQ belongs to another context", ErrInvalid)
	}
	if what < CounterCompletions {
		return fmt.Errorf("attach counters: %w: %d is not counted of a CQ", ErrInvalid, what)
	}
	return k.attach(cq.handle, what, index)
}

func (k *Counters) attach(of provider.Handle, what CounterDescription, index int) error {
	if index < 0 || index >= ib.MaxCounters {
		return fmt.Errorf("attach counters: %w: counter %d; there are %d, from 0", ErrInvalid, index, ib.MaxCounters)
	}
	r := provider.AttachCountersRequest{Counters: k.handle, Of: of, What: what, Index: uint32(index)}
	if err := provider.Exec(k.ctx.provider, provider.AttachCounters, r); err != nil {
		return fmt.Errorf("attach counters: %w", err)
	}
	return nil
}

// Read gives the counters by their indices, all at one instant, as many as values has room for (ibv_read_counters).
// Those that nothing is attached to are 0. ErrInvalid for more than MaxCounters.
func (k *Counters) Read(values []uint64) error {
	if k == nil {
		return fmt.Errorf("read counters: %w", errNil)
	}
	if len(values) > ib.MaxCounters {
		return fmt.Errorf("read counters: %w: %d values; there are %d", ErrInvalid, len(values), ib.MaxCounters)
	}
	grant, err := provider.Do(k.ctx.provider, provider.ReadCounters, provider.ReadCountersRequest{Counters: k.handle})
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	copy(values, grant.Values[:])
	return nil
}

// Close ends the counting (ibv_destroy_counters), also of queue pairs that are attached.
func (k *Counters) Close() error {
	if k == nil {
		return fmt.Errorf("destroy counters: %w", errNil)
	}
	if err := provider.Exec(k.ctx.provider, provider.DestroyCounters, provider.DestroyCountersRequest{Counters: k.handle}); err != nil {
		return fmt.Errorf("destroy counters: %w", err)
	}
	return nil
}
