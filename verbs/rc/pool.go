package rc

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// pool is receive buffers: a connection's own, or those that the connections of a domain share. Each is
// posted, lent, or in returned, where it waits to be posted together with others.
type pool struct {
	memory []byte
	stride int
	fit    uint32 // how many slots the memory has; others are the same ones again
	put    func([]verbs.RecvWR) error

	mu       sync.Mutex
	requests []verbs.RecvWR // by slot
	lives    []uint32       // by slot: odd while it is lent
	returned []verbs.RecvWR
	enough   int // how many returned buffers are posted together
	lent     int
	spare    []*[batch]verbs.WC
}

// newPool makes the requests, which are used again and again. Slots overlap if the memory is too short for
// all.
func newPool(mr *verbs.MR, depth, stride, length int, put func([]verbs.RecvWR) error) *pool {
	p := &pool{memory: mr.Bytes(), stride: stride, fit: 1, put: put, enough: max(1, min(batch/2, depth/8))}
	if stride > 0 {
		p.fit += uint32((len(p.memory) - length) / stride)
	}
	p.requests, p.lives = make([]verbs.RecvWR, depth), make([]uint32, depth)
	p.returned = make([]verbs.RecvWR, 0, p.enough+depth)
	sges := make([]verbs.SGE, depth)
	for i := range depth {
		sges[i] = mr.SGE(p.start(uint32(i)), length)
		p.requests[i] = verbs.RecvWR{ID: uint64(i), SGList: sges[i : i+1]}
	}
	return p
}

func (p *pool) postAll() error { return p.put(p.requests) }

// start is where a slot begins.
func (p *pool) start(slot uint32) int {
	if slot >= p.fit {
		slot %= p.fit
	}
	return int(slot) * p.stride
}

// data is what a slot holds.
func (p *pool) data(slot, length uint32) []byte {
	start := p.start(slot)
	return p.memory[start : start+int(length) : start+int(length)]
}

// borrow gives the caller an array for completions, so that several callers can wait at once.
func (p *pool) borrow() (*[batch]verbs.WC, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent == len(p.requests) {
		return nil, fmt.Errorf("receive: %w: release messages sooner (copy what is to be kept), or ask for more than RecvDepth %d",
			ErrKept, len(p.requests))
	}
	if p.lent+len(p.returned) == len(p.requests) {
		p.post()
	}
	if len(p.spare) == 0 {
		return new([batch]verbs.WC), nil
	}
	wcs := p.spare[len(p.spare)-1]
	p.spare = p.spare[:len(p.spare)-1]
	return wcs, nil
}

// lend marks a slot. The caller holds mu.
func (p *pool) lend(m *Message, slot uint32) {
	p.lives[slot]++
	p.lent++
	m.pool, m.slot, m.life = p, slot, p.lives[slot]
}

// takeBack takes back a message's buffer, unless that was done before. The caller holds mu.
func (p *pool) takeBack(m *Message) {
	if m.pool != p || p.lives[m.slot] != m.life {
		return
	}
	p.lives[m.slot]++
	p.lent--
	slot := m.slot
	m.Data, m.pool = nil, nil
	p.giveBack(slot)
}

// giveBack posts a buffer, together with others. The caller holds mu.
func (p *pool) giveBack(slot uint32) {
	p.returned = append(p.returned, p.requests[slot])
	if len(p.returned) >= p.enough {
		p.post()
	}
}

// post posts the returned buffers. If that fails, the connection or the device has failed, and the next
// receive returns the error. The caller holds mu.
func (p *pool) post() {
	_ = p.put(p.returned)
	p.returned = p.returned[:0]
}
