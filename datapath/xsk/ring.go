// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A ring is an array of entries and two indexes, which wrap at 2³². The place of an entry is its index modulo the size,
// which is a power of two. The producer writes the entries and its index, the consumer only its own index. Each side
// keeps its index in private memory and copies it to the ring. It checks the bounds of the index that it loads from the
// other side before use.

// producer is the side that adds entries: ours on the fill and the TX ring.
type producer[T any] struct {
	entries []T
	mask    uint32
	next    uint32         // index of the next entry to write; unpublished entries are between index and next
	index   *atomic.Uint32 // written by us
	peer    *atomic.Uint32 // the consumer's index, written by the kernel
	flags   *atomic.Uint32 // written by the kernel
}

// consumer is the side that removes entries: ours on the RX and the completion ring.
type consumer[T any] struct {
	entries []T
	mask    uint32
	next    uint32         // index of the next entry to remove
	index   *atomic.Uint32 // written by us
	peer    *atomic.Uint32 // the producer's index, written by the kernel
}

// put adds an entry without publishing it. The caller must have checked that there is room.
func (p *producer[T]) put(entry T) {
	p.entries[p.next&p.mask] = entry
	p.next++
}

// publish makes all entries put so far visible to the kernel. It pairs with the smp_load_acquire of xskq_cons_peek_desc
// and xskq_cons_peek_addr (net/xdp/xsk_queue.h).
func (p *producer[T]) publish() { p.index.Store(p.next) }

// pending returns the number of entries that the kernel has not consumed, including unpublished ones. If the kernel's
// index is out of bounds, the ring counts as full. It pairs with xskq_cons_release.
func (p *producer[T]) pending() uint32 {
	return min(p.next-p.peer.Load(), p.size())
}

// room returns the number of entries that can be put.
func (p *producer[T]) room() uint32 { return p.size() - p.pending() }

func (p *producer[T]) size() uint32 { return uint32(len(p.entries)) }

// needWakeup reports whether the kernel sleeps until a system call wakes it. It pairs with xsk_set_tx_need_wakeup and
// xsk_set_rx_need_wakeup: the index is stored before the flags are loaded.
func (p *producer[T]) needWakeup() bool {
	return p.flags.Load()&unix.XDP_RING_NEED_WAKEUP != 0
}

// available returns the number of entries that can be removed; 0 if the kernel's index is out of bounds. It pairs with
// the smp_store_release of xskq_prod_submit.
func (c *consumer[T]) available() uint32 {
	n := c.peer.Load() - c.next
	if n > c.size() {
		return 0
	}
	return n
}

// at returns a copy of the i-th available entry.
func (c *consumer[T]) at(i uint32) T { return c.entries[(c.next+i)&c.mask] }

// release returns the first n entries to the kernel. It pairs with the load in xskq_prod_nb_free.
func (c *consumer[T]) release(n uint32) {
	c.next += n
	c.index.Store(c.next)
}

func (c *consumer[T]) size() uint32 { return uint32(len(c.entries)) }
