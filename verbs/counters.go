// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Counters counts packets of queue pairs and completions of CQs (ibv_counters). It has MaxCounters counters, which
// start at 0. It counts as a memory region towards limits.
type Counters struct {
	ctx    *Context
	handle provider.Handle
}

// CounterDescription selects the quantity that a counter counts (ibv_counter_description), for example CounterPackets.
type CounterDescription = ib.CounterDescription

// The quantities that counters can count. The first two are those of libibverbs.
const (
	CounterPackets     = ib.CounterPackets     // packets delivered to the queue pair
	CounterBytes       = ib.CounterBytes       // payload bytes delivered to the queue pair
	CounterSentPackets = ib.CounterSentPackets // packets sent by the queue pair, including acknowledgements and retransmissions
	CounterSentBytes   = ib.CounterSentBytes   // payload bytes sent by the queue pair, including retransmissions
	CounterCompletions = ib.CounterCompletions // successful completions added to the CQ
	CounterErrors      = ib.CounterErrors      // failed completions added to the CQ; see AttachCQ
)

// CreateCounters creates counters (ibv_create_counters). ErrLimit beyond 1024 of them.
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

// AttachQP adds a quantity of a queue pair to the counter with this index, from now on (ibv_attach_counters_point_flow,
// where the flow is all packets of the queue pair). Several queue pairs may be attached to one index; the counter is
// their sum. They stay attached until Close, and closing a queue pair does not change the counter. ErrInvalid if index
// is not below MaxCounters, ErrUnsupported for an XRC target, ErrLimit after 64 attachments.
func (k *Counters) AttachQP(qp *QP, what CounterDescription, index int) error {
	if k == nil || qp == nil {
		return fmt.Errorf("attach counters: %w", errNil)
	}
	if qp.ctx != k.ctx {
		return fmt.Errorf("attach counters: %w: the QP belongs to another context", ErrInvalid)
	}
	if what >= CounterCompletions {
		return fmt.Errorf("attach counters: %w: a QP has no counter %d", ErrInvalid, what)
	}
	return k.attach(qp.handle, what, index)
}

// AttachCQ adds the completions of a CQ to the counter with this index, from now on: CounterCompletions or
// CounterErrors (ibv_comp_cntr). Requests without a completion do not count. Otherwise it works like AttachQP.
func (k *Counters) AttachCQ(cq *CQ, what CounterDescription, index int) error {
	if k == nil || cq == nil {
		return fmt.Errorf("attach counters: %w", errNil)
	}
	if cq.ctx != k.ctx {
		return fmt.Errorf("attach counters: %w: the CQ belongs to another context", ErrInvalid)
	}
	if what < CounterCompletions {
		return fmt.Errorf("attach counters: %w: a CQ has no counter %d", ErrInvalid, what)
	}
	return k.attach(cq.handle, what, index)
}

func (k *Counters) attach(of provider.Handle, what CounterDescription, index int) error {
	if index < 0 || index >= ib.MaxCounters {
		return fmt.Errorf("attach counters: %w: counter index %d; it must be below %d", ErrInvalid, index, ib.MaxCounters)
	}
	r := provider.AttachCountersRequest{Counters: k.handle, Of: of, What: what, Index: uint32(index)}
	if err := provider.Exec(k.ctx.provider, provider.AttachCounters, r); err != nil {
		return fmt.Errorf("attach counters: %w", err)
	}
	return nil
}

// Read copies the counters to values in the order of their indices, as many as fit, in a consistent snapshot
// (ibv_read_counters). Counters without attachments are 0. ErrInvalid if values is longer than MaxCounters.
func (k *Counters) Read(values []uint64) error {
	if k == nil {
		return fmt.Errorf("read counters: %w", errNil)
	}
	if len(values) > ib.MaxCounters {
		return fmt.Errorf("read counters: %w: %d values; there are only %d counters", ErrInvalid, len(values), ib.MaxCounters)
	}
	grant, err := provider.Do(k.ctx.provider, provider.ReadCounters, provider.ReadCountersRequest{Counters: k.handle})
	if err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	copy(values, grant.Values[:])
	return nil
}

// Close ends the counting (ibv_destroy_counters), also for attached queue pairs.
func (k *Counters) Close() error {
	if k == nil {
		return fmt.Errorf("destroy counters: %w", errNil)
	}
	if err := provider.Exec(k.ctx.provider, provider.DestroyCounters, provider.DestroyCountersRequest{Counters: k.handle}); err != nil {
		return fmt.Errorf("destroy counters: %w", err)
	}
	return nil
}
