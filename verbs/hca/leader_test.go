// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// A server and its clients sleep in Wait, and pause now and then, so that the card is run by a single waiter, by the
// worker for several waiters, and by the worker without waiters. Each response arrives.
func TestRequests(t *testing.T) {
	for name, l := range map[string]*stations{
		"as it is":       newStations(t),
		"without a spin": newStations(t, WithSpin(0)),
		"by the worker":  newStations(t, WithoutInline()),
	} {
		t.Run(name, func(t *testing.T) {
			for _, clients := range []int{1, 2, 5} {
				requests(t, l.a, l.b, "10.77.0.1", "10.77.0.2", clients)
			}
		})
	}
}

func TestRequestsInMemory(t *testing.T) {
	w := newWirePair(t)
	for _, clients := range []int{1, 2, 5} {
		requests(t, w.a, w.b, "10.0.0.1", "10.0.0.2", clients)
	}
}

// requests runs clients on one card, each with its own server on the other.
func requests(t *testing.T, a, b *station, addressA, addressB string, clients int) {
	const trips = 300
	var all sync.WaitGroup
	ctx := guard(t)
	for range clients {
		client, server := newPoller(t, a, addressB), newPoller(t, b, addressA)
		check(t, server.receive())
		all.Go(func() {
			for range trips {
				if err := errors.Join(client.receive(), client.send(server.qp.Number()), client.sleep(ctx)); err != nil {
					t.Error(err)
					return
				}
				if rand.IntN(10) == 0 {
					time.Sleep(rand.N(3 * time.Millisecond))
				}
			}
		})
		all.Go(func() {
			for range trips {
				if err := errors.Join(server.sleep(ctx), server.receive(), server.send(client.qp.Number())); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (p *poller) receive() error {
	return p.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{p.mr.SGE(0, slotLen)}}})
}

func (p *poller) sleep(ctx context.Context) error {
	var wcs [1]verbs.WC
	_, err := p.cq.Wait(ctx, wcs[:])
	return err
}

// The receives of a program that has waited, and now neither waits nor polls, complete, and its sends are sent.
func TestProgramDoesSomethingElse(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	a, b := newPoller(t, l.a, "10.77.0.2"), newPoller(t, l.b, "10.77.0.1")
	delivered := func() uint64 { return l.b.device.engine.Counters().Delivered }
	for range 10 {
		for range 5 { // b becomes the leader and stops
			check(t, b.receive())
			check(t, a.send(b.qp.Number()))
			check(t, b.sleep(guard(t)))
		}
		before := delivered()
		check(t, b.receive())
		check(t, a.send(b.qp.Number()))
		eventually(t, "the message", func() bool { return delivered() == before+1 })
		check(t, b.sleep(guard(t)))
	}
}

// Waiters on many CQs of one card start, are cancelled, or have their CQ closed, while others exchange messages: each
// returns with its expected result.
func TestWaitersComeAndGo(t *testing.T) {
	w := newWirePair(t)
	client, server := newPoller(t, w.a, "10.0.0.2"), newPoller(t, w.b, "10.0.0.1")
	stop, cancel := context.WithCancel(guard(t))
	var others sync.WaitGroup
	var closed, cancelled atomic.Int64
	for range 3 {
		others.Go(func() {
			for stop.Err() == nil {
				cq, err := w.b.ctx.CreateCQ(4)
				check(t, err)
				ctx, end := context.WithTimeout(context.Background(), rand.N(200*time.Microsecond))
				go func() {
					time.Sleep(rand.N(200 * time.Microsecond))
					if rand.IntN(2) == 0 {
						end()
					}
				}()
				var wcs [1]verbs.WC
				waited := make(chan error, 1)
				go func() {
					_, err := cq.Wait(ctx, wcs[:])
					waited <- err
				}()
				time.Sleep(rand.N(200 * time.Microsecond))
				check(t, cq.Close())
				switch err := <-waited; {
				case errors.Is(err, verbs.ErrObjectClosed):
					closed.Add(1)
				case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
					cancelled.Add(1)
				default:
					t.Errorf("%v", err)
				}
				end()
			}
		})
	}
	check(t, server.receive())
	for n := 0; n < 1000 || (closed.Load() == 0 || cancelled.Load() == 0) && stop.Err() == nil; n++ {
		check(t, errors.Join(client.receive(), client.send(server.qp.Number()), server.sleep(stop), server.receive(), server.send(client.qp.Number()), client.sleep(stop)))
	}
	cancel()
	others.Wait()
	if closed.Load() == 0 || cancelled.Load() == 0 {
		t.Errorf("got %d closed and %d cancelled waits", closed.Load(), cancelled.Load())
	}
}
