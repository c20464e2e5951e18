// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// placed is the memory of a session, as its program has mapped it.
type placed []byte

func (placed) PlaceOf([]byte) (proto.Place, error) { return proto.Place{}, nil }
func (m placed) At(p proto.Place) ([]byte, error)  { return p.Of(m) }

// mapped maps the session's memory.
func (r *raw) mapped() placed {
	r.Helper()
	memory, err := unix.Mmap(r.memory, 0, int(r.opened.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(r, err)
	r.Cleanup(func() { check(r, unix.Munmap(memory)) })
	return memory
}

// grantIn asks, and has the grant's memory be where the program has it.
func grantIn[Q, G any](r *raw, memory placed, command proto.Command[Q, G], request *Q) G {
	r.Helper()
	packet, err := command.EncodeRequest(1, request)
	check(r, err)
	check(r, r.Send(packet))
	m, _, err := r.Receive()
	check(r, err)
	grant, err := command.DecodeGrant(m.Body, memory)
	check(r, err)
	return grant
}

// asleepOn is a thread that sleeps on a word, until it changes or the thread is woken.
func asleepOn(memory []byte, value uint32) (woken chan struct{}) {
	woken = make(chan struct{})
	go func() {
		for sleepOn(memory, value) != 0 && wordIn(memory).Load() == value {
		}
		close(woken)
	}()
	return woken
}

// TestFutexOfACQ: a thread of the program that sleeps on the CQ's index is woken by the next completion, once, and no
// message comes.
func TestFutexOfACQ(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	memory, pd := c.mapped(), c.allocPD()
	cq := grantIn(c, memory, proto.CreateCQ, &provider.CreateCQRequest{Entries: 16, EventID: 1})
	qp := grantIn(c, memory, proto.CreateQP, &provider.CreateQPRequest{
		PD: pd, Type: verbs.QPTypeUD, Cap: verbs.QPCap{MaxRecvWR: 16, MaxRecvSGE: 1}, SendCQ: cq.CQ, RecvCQ: cq.CQ, EventID: 3,
	})
	ask(c, proto.ModifyQP, &provider.ModifyQPRequest{
		QP: qp.QP, Attr: verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey},
		Mask: verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey,
	})
	receives, err := ring.NewRecvProducer(qp.RecvMemory, qp.RecvGeometry)
	check(t, err)
	receives.Put(7, nil)
	receives.Publish()
	const armedWord = 132
	armed := wordIn(cq.Memory[armedWord:])
	armed.Or(uint32(ring.ArmedFutex))
	woken := asleepOn(cq.Memory, 0)
	ask(c, proto.ModifyQP, &provider.ModifyQPRequest{QP: qp.QP, Attr: verbs.QPAttr{State: verbs.QPStateErr}, Mask: verbs.QPAttrState})
	select {
	case <-woken:
	case <-guard(t).Done():
		t.Fatal("not woken")
	}
	if got := armed.Load(); got != 0 || wordIn(cq.Memory).Load() != 1 {
		t.Errorf("armed %b, %d completions", got, wordIn(cq.Memory).Load())
	}
	if _, err := unix.Read(c.signal, make([]byte, 8)); err != unix.EAGAIN {
		t.Errorf("a message: %v", err)
	}
}

// TestEndedWord: when the session ends and the program lives, a word reports it, and wakes the threads that sleep on it.
func TestEndedWord(t *testing.T) {
	for name, end := range map[string]func(r *rig, c *raw){
		"the card is closed":    func(r *rig, _ *raw) { check(t, r.cards[0].Close()) },
		"the service is closed": func(r *rig, _ *raw) { check(t, r.a.Close()) },
		"an internal error":     func(r *rig, _ *raw) { r.a.youngest().session.Faulted(verbs.ErrHost) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, anyone)
			c := r.a.opened(t)
			const endedWord = 4
			word := c.mapped()[c.opened.Doorbell.Offset+endedWord:]
			if wordIn(word).Load() != 0 {
				t.Fatal("it has ended")
			}
			woken := asleepOn(word, 0)
			end(r, c)
			select {
			case <-woken:
			case <-guard(t).Done():
				t.Fatal("not woken")
			}
			if wordIn(word).Load() != 1 {
				t.Error("the word does not say so")
			}
		})
	}
}
