// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
)

// Options describes a measurement.
type Options struct {
	Type      verbs.QPType // RC or UC
	Operation Operation
	Size      int           // bytes of each message
	Count     int           // number of queue pairs
	Depth     int           // maximum number of outstanding requests per queue pair
	Spin      bool          // spin while waiting
	Timeout   time.Duration // for the next completion or message
	Ack       time.Duration // local ACK timeout of RC; 0: card.AckTimeout
}

const (
	// recvDepth is the number of receives that a queue pair has posted, recvBatch the number posted at
	// once.
	recvDepth = 512
	recvBatch = 16
	// leastRoom is the minimum size of the memory that the peer writes and reads. With short messages perftest uses one
	// page of its machine, which has at most this size.
	leastRoom = 64 << 10
)

// Pairs holds the queue pairs of one side. Requests send from, or read into, the first half of their
// memory. The second half is for the peer's SENDs, WRITEs and READs.
type Pairs struct {
	options  Options
	device   *card.Device
	source   verbs.GIDEntry
	pd       *verbs.PD
	mr       *verbs.MR
	cq       *verbs.CQ
	all      []*pair
	byNumber map[verbs.QPN]*pair
	wcs      [4 * card.Batch]verbs.WC

	done        uint64 // requests
	Received    uint64 // messages
	first, last time.Time
}

// Open creates queue pairs with a source address of the GID table.
func Open(d *card.Device, source verbs.GIDEntry, o Options) (*Pairs, error) {
	if o.Spin {
		card.MakeRoomToSpin()
	}
	p := &Pairs{options: o, device: d, source: source, byNumber: map[verbs.QPN]*pair{}}
	if err := p.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Attr.Name, err), p.Close())
	}
	return p, nil
}

func (p *Pairs) open() (err error) {
	if p.pd, err = p.device.AllocPD(); err != nil {
		return err
	}
	access := verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	if p.mr, err = p.pd.AllocMR(2*p.room(), access); err != nil {
		return err
	}
	if p.cq, err = p.device.CreateCQ(p.options.Count * (p.options.Depth + p.recvDepth())); err != nil {
		return err
	}
	for range p.options.Count {
		if err := p.add(); err != nil {
			return err
		}
	}
	return nil
}

// add creates one queue pair.
func (p *Pairs) add() error {
	qp, err := p.pd.CreateQP(&verbs.QPInitAttr{
		Type: p.options.Type, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: uint32(p.options.Depth), MaxRecvWR: uint32(p.recvDepth())},
	})
	if err != nil {
		return err
	}
	q := &pair{qp: qp, psn: verbs.PSN(rand.Uint32N(1 << 24))}
	p.all = append(p.all, q)
	p.byNumber[qp.Number()] = q
	return nil
}

// Close releases everything that was created.
func (p *Pairs) Close() (err error) {
	for _, q := range p.all {
		err = errors.Join(err, q.qp.Close())
	}
	if p.cq != nil {
		err = errors.Join(err, p.cq.Close())
	}
	if p.mr != nil {
		err = errors.Join(err, p.mr.Close())
	}
	if p.pd != nil {
		err = errors.Join(err, p.pd.Close())
	}
	return err
}

// room returns the size of each half of the memory in bytes.
func (p *Pairs) room() int { return max(p.options.Size, leastRoom) }

func (p *Pairs) recvDepth() int {
	if p.options.Operation == Send {
		return recvDepth
	}
	return 0
}

// outReads returns the maximum number of outstanding reads and atomics of a queue pair, in each
// direction.
func (p *Pairs) outReads() uint16 {
	if p.options.Operation.HasAnswer() {
		return uint16(p.device.Attr.MaxQPRDAtom)
	}
	return 1
}

// Keys returns the address of queue pair i for the peer.
func (p *Pairs) Keys(i int) perftest.Keys {
	q := p.all[i]
	return perftest.Keys{
		Destination: meet.Destination{QPN: q.qp.Number(), PSN: q.psn, GID: p.source.GID},
		OutReads:    p.outReads(), RKey: uint32(p.mr.RKey()), Address: uint64(p.room()),
	}
}

// Connect connects each queue pair to one of the peer's, and posts receives.
func (p *Pairs) Connect(peers []perftest.Keys, mtu verbs.MTU) error {
	for i, q := range p.all {
		peer := peers[i]
		attr := card.ConnectionAttr(p.source, peer.GID)
		attr.DestQPN, attr.RQPSN, attr.SQPSN, attr.PathMTU = peer.QPN, peer.PSN, q.psn, mtu
		attr.MaxDestRDAtomic, attr.MaxRDAtomic = uint8(p.outReads()), uint8(min(p.outReads(), peer.OutReads))
		attr.Timeout = verbs.TimeoutCode(cmp.Or(p.options.Ack, card.AckTimeout))
		if p.options.Type == verbs.QPTypeRC {
			attr.AccessFlags |= verbs.AccessRemoteAtomic
		}
		if err := q.qp.Connect(&attr); err != nil {
			return fmt.Errorf("connect to %v: %w", peer.GID.Addr(), err)
		}
		q.prepare(p, peer)
		for range p.recvDepth() / recvBatch {
			if err := q.qp.PostRecv(q.receives[:]); err != nil {
				return err
			}
		}
	}
	return nil
}
