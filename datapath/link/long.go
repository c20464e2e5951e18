// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
)

// Long frames hold long packets (datapath/conn), whose payloads are longer than a path MTU.
const (
	longPayload   = 32 << 10 // maximum payload, in bytes; a message of 64 KiB has two long packets
	longFrameSize = (wire.MaxHeaders + longPayload + wire.MaxTrailer + 63) &^ 63
	// maxLong is the maximum number of long frames in use in a network, 8 MiB, apart from one per sending port. At the
	// limit, senders send short packets.
	maxLong = 256
)

type longFrame [longFrameSize]byte

// longFrames holds the long frames of a network. The frame that was returned last is reused first, since it is likely
// to be in the processor's cache.
type longFrames struct {
	inUse atomic.Int64
	mu    sync.Mutex
	free  []*longFrame
}

func (l *longFrames) take() *longFrame {
	l.inUse.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return new(longFrame)
	}
	one := l.free[last]
	l.free = l.free[:last]
	return one
}

func (l *longFrames) giveBack(one *longFrame) {
	l.inUse.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < maxLong {
		l.free = append(l.free, one)
	}
}

// Longest implements Port.
func (p *port) Longest() int {
	n := p.network
	if n.shortOnly.Load() > 0 || n.impairment.Load() != nil || n.long.inUse.Load() >= maxLong {
		return 0
	}
	return longPayload
}

// ReserveLong implements Port.
func (p *port) ReserveLong() []byte {
	if p.out.room() == nil {
		return nil
	}
	if p.long == nil {
		p.long = p.network.long.take()
	}
	p.commitsLong = true
	return p.long[:]
}

// leaveLong frees a long frame that was reserved and not committed.
func (p *port) leaveLong() {
	if p.long != nil {
		p.network.long.giveBack(p.long)
		p.long, p.commitsLong = nil, false
	}
}

// SetWatched implements Port.
func (p *port) SetWatched(watched bool) {
	if p.watched == watched {
		return
	}
	p.watched = watched
	if watched {
		p.network.shortOnly.Add(1)
	} else {
		p.network.shortOnly.Add(-1)
	}
}
