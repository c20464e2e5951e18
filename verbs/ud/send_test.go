// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

func TestWhatCannotBeSent(t *testing.T) {
	a, b := pair(t, ud.Options{MaxMessage: 100})
	ctx := guard(t)
	err := a.Send(ctx, b.LocalAddr(), make([]byte, 101))
	refused(t, err, ud.ErrTooLong)
	refused(t, err, unix.EMSGSIZE)
	refused(t, a.Send(ctx, ud.Addr{}, nil), verbs.ErrInvalid)
	refused(t, a.Send(ctx, addr("10.0.0.77", 5, 1), nil), verbs.ErrUnreachable)
	n, err := a.SendBatch(ctx, []ud.Message{{To: b.LocalAddr(), Data: []byte("one")}, {To: b.LocalAddr(), Data: make([]byte, 101)}, {To: b.LocalAddr()}})
	refused(t, err, ud.ErrTooLong)
	if n != 1 {
		t.Errorf("got %d messages sent before the one that is too long, want 1", n)
	}
	said(t, b, "one")
	check(t, a.Send(ctx, b.LocalAddr(), make([]byte, 100)))
	said(t, b, string(make([]byte, 100)))
	check(t, a.Send(ctx, b.LocalAddr(), nil))
	said(t, b, "")
	over, cancel := context.WithCancel(ctx)
	cancel()
	refused(t, a.Send(over, b.LocalAddr(), nil), context.Canceled)
	_, err = b.Recv(over)
	refused(t, err, context.Canceled)
}

func TestOptionsRefused(t *testing.T) {
	left, _ := wire(t)
	for want, o := range map[error]ud.Options{
		ud.ErrTooLong:       {MaxMessage: 4097},
		verbs.ErrInvalid:    {RecvDepth: -1},
		unix.EINVAL:         {SendDepth: 1 << 30},
		verbs.ErrPermission: {QKey: 0x80000001},
	} {
		if errors.Is(want, verbs.ErrPermission) && unix.Geteuid() == 0 {
			continue // privileged programs may
		}
		_, err := ud.New(left, o)
		refused(t, err, want)
	}
	_, err := ud.New(nil, ud.Options{})
	refused(t, err, verbs.ErrInvalid)
	_, err = ud.New(left, ud.Options{FlowLabel: 1 << 20})
	refused(t, err, verbs.ErrInvalid)
	_, err = ud.New(left, ud.Options{Source: netip.MustParseAddr("10.9.9.9")})
	refused(t, err, verbs.ErrNoGID)
	listen(t, left, ud.Options{Source: netip.MustParseAddr("::ffff:10.0.0.1"), FlowLabel: 1<<20 - 1})
	for _, any := range []string{"::", "0.0.0.0"} {
		e := listen(t, left, ud.Options{Source: netip.MustParseAddr(any)})
		if e.LocalAddr().IP() != addressesA[0] {
			t.Errorf("source %s: got %v", any, e.LocalAddr())
		}
	}
	e := listen(t, left, ud.Options{Source: netip.MustParseAddr("10.0.0.1")})
	refused(t, e.Send(guard(t), addr("fd00::2", 5, 1), nil), verbs.ErrNoGID)
	_, err = ud.Dial(guard(t), left, addr("10.0.0.77", 5, 1), ud.Options{})
	refused(t, err, verbs.ErrUnreachable)
}

// TestNoRoom uses cards that send only when they are run.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	left, right := wire(t, hca.WithoutWorker(), hca.WithoutInline())
	a, b := listen(t, left, ud.Options{SendDepth: 8}), listen(t, right, ud.Options{})
	ctx := guard(t)
	messages := make([]ud.Message, 20)
	for i := range messages {
		messages[i] = ud.Message{To: b.LocalAddr(), Data: []byte(text(i))}
	}
	n, err := a.TrySend(ctx, messages)
	refused(t, err, verbs.ErrQueueFull)
	if n != 8 {
		t.Errorf("got %d messages queued, want 8", n)
	}
	brief, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() {
		_, err := a.SendBatch(brief, messages[8:])
		result <- err
	}()
	cancel()
	refused(t, <-result, context.Canceled)
	go func() { result <- a.Send(ctx, b.LocalAddr(), nil) }()
	go func() { result <- a.Send(ctx, b.LocalAddr(), nil) }()
	check(t, a.Close())
	for range 2 {
		refused(t, <-result, ud.ErrClosed)
	}
}

// TestMending makes the card refuse a message: a later call reports it, and the endpoint continues to work.
func TestMending(t *testing.T) {
	for _, spin := range []bool{false, true} {
		a, b := pair(t, ud.Options{Spin: spin})
		ctx := guard(t)
		check(t, a.Send(ctx, b.LocalAddr(), []byte("before")))
		said(t, b, "before")
		for range 3 {
			a.Overrate(8000)
			check(t, a.Send(ctx, b.LocalAddr(), make([]byte, 5000)))
			err := a.Flush(ctx)
			var failed *ud.SendError
			if !errors.As(err, &failed) || failed.To != b.LocalAddr() || failed.Lost != 0 {
				t.Fatalf("flush: got %v", err)
			}
			refused(t, err, unix.EMSGSIZE)
			refused(t, a.Send(ctx, b.LocalAddr(), make([]byte, 5000)), ud.ErrTooLong) // the MTU has been read again
		}
		check(t, a.Flush(ctx))
		check(t, a.Send(ctx, b.LocalAddr(), []byte("after")))
		said(t, b, "after")
		if s := a.Stats(); s.Lost != 3 || s.Sent != 5 {
			t.Errorf("%+v", s)
		}
	}
}

// TestMendingUnderLoad sends from many goroutines while messages are refused: each message is reported as lost, or
// arrives.
func TestMendingUnderLoad(t *testing.T) {
	const senders, each = 4, 500
	a, b := pair(t, ud.Options{RecvDepth: senders * each})
	ctx := guard(t)
	to := b.LocalAddr()
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for i := range each {
				data := []byte("short")
				if sender == 0 && i%50 == 0 {
					a.Overrate(8000)
					data = make([]byte, 5000)
				}
				for {
					err := a.Send(ctx, to, data)
					var failed *ud.SendError
					if err == nil || errors.Is(err, ud.ErrTooLong) {
						break
					}
					if !errors.As(err, &failed) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	for {
		var failed *ud.SendError
		if err := a.Flush(ctx); err == nil {
			break
		} else if !errors.As(err, &failed) {
			t.Fatal(err)
		}
	}
	s := a.Stats()
	if s.Lost == 0 {
		t.Error("no message was refused")
	}
	for range s.Sent - s.Lost {
		said(t, b, "short")
	}
}

// TestManyDestinations uses fewer handles than destinations.
func TestManyDestinations(t *testing.T) {
	a, b := pair(t, ud.Options{MaxHandles: 3, SendDepth: 16})
	ctx := guard(t)
	const groups, rounds = 10, 5
	for i := range groups {
		check(t, b.Join(netip.AddrFrom4([4]byte{239, 0, 0, byte(i)})))
	}
	for round := range rounds {
		for i := range groups {
			to := ud.Group(netip.AddrFrom4([4]byte{239, 0, 0, byte(i)}))
			check(t, a.Send(ctx, to, []byte(text(round))))
			if m := said(t, b, text(round)); m.To != to {
				t.Fatalf("arrived at %v, was sent to %v", m.To, to)
			}
		}
	}
	if s := a.Stats(); s.Handles != 3 || s.Evicted != groups*rounds-3 {
		t.Errorf("%+v", s)
	}
	for _, to := range addressesB {
		check(t, a.Send(ctx, addr(to.String(), b.LocalAddr().QPN, 0), []byte("one of three")))
		if m := said(t, b, "one of three"); m.From.IP().Is4() != to.Is4() || m.From.IP().IsLinkLocalUnicast() != to.IsLinkLocalUnicast() {
			t.Errorf("sent to %v, arrived from %v", to, m.From)
		}
	}
}

// TestManyGoroutines sends and receives from many goroutines at once: each message arrives once.
func TestManyGoroutines(t *testing.T) {
	for _, spin := range []bool{false, true} {
		t.Run(fmt.Sprint("spin ", spin), func(t *testing.T) {
			const senders, each, receivers = 4, 500, 3
			a, b := pair(t, ud.Options{RecvDepth: senders * each, SendDepth: 32, Spin: spin})
			var all sync.WaitGroup
			for sender := range senders {
				all.Go(func() {
					for i := range each {
						if err := a.Send(guard(t), b.LocalAddr(), []byte(fmt.Sprint(sender, " ", i))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			seen := make(chan string, senders*each)
			ctx, done := context.WithCancel(guard(t))
			var takers sync.WaitGroup
			for range receivers {
				takers.Go(func() { collect(t, ctx, b, seen) })
			}
			all.Wait()
			messages := map[string]bool{}
			for range senders * each {
				messages[<-seen] = true
			}
			done()
			takers.Wait()
			if len(messages) != senders*each {
				t.Errorf("got %d different messages, want %d", len(messages), senders*each)
			}
		})
	}
}

func collect(t testing.TB, ctx context.Context, e *ud.Endpoint, seen chan<- string) {
	messages := make([]ud.Message, 16)
	for {
		n, err := e.RecvBatch(ctx, messages)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		}
		for _, m := range messages[:n] {
			seen <- string(m.Data)
		}
		e.Release(messages[:n])
	}
}

// TestRefusedMessagesHoldUpNothing checks that any number of refused messages does not block the queue, and that no
// call waits for completions that do not come.
func TestRefusedMessagesHoldUpNothing(t *testing.T) {
	for _, depth := range []int{1, 4, 64} {
		left, right := wire(t)
		a, b := listen(t, left, ud.Options{SendDepth: depth}), listen(t, right, ud.Options{})
		ctx, nobody := guard(t), b.LocalAddr()
		nobody.QPN = 0
		for i := range 4 * depth {
			if err := a.Send(ctx, nobody, []byte("?")); err == nil {
				t.Fatal("a message to queue pair 0 was accepted")
			}
			if i%3 == 0 {
				_, err := a.SendBatch(ctx, []ud.Message{{To: b.LocalAddr()}, {To: nobody}})
				if err == nil {
					t.Fatal("a message to queue pair 0 was accepted")
				}
			}
			check(t, a.Send(ctx, b.LocalAddr(), []byte("!")))
		}
		check(t, a.Flush(ctx))
	}
}

// TestSendsAreHeldBack checks that an endpoint with a rate refuses messages that must not wait, and that a waiting
// message ends with the endpoint or the context.
func TestSendsAreHeldBack(t *testing.T) {
	left, right := wire(t)
	for _, o := range []ud.Options{{Rate: -1}, {ByteRate: -1}} {
		_, err := ud.New(left, o)
		refused(t, err, verbs.ErrInvalid)
	}
	a, b := listen(t, left, ud.Options{ByteRate: 1}), listen(t, right, ud.Options{})
	check(t, a.Resolve(guard(t), b.LocalAddr()))
	check(t, a.Send(guard(t), b.LocalAddr(), make([]byte, 1000))) // due at once; the next in 1000 s
	two := []ud.Message{{To: b.LocalAddr()}, {To: b.LocalAddr()}}
	n, err := a.TrySend(guard(t), two)
	refused(t, err, verbs.ErrQueueFull)
	some, cancel := context.WithTimeout(guard(t), time.Millisecond)
	defer cancel()
	refused(t, a.Send(some, b.LocalAddr(), nil), context.DeadlineExceeded)
	if n != 0 || a.Stats().Sent != 1 {
		t.Errorf("got %d queued, %d in total", n, a.Stats().Sent)
	}
	held := make(chan error)
	go func() { held <- a.Send(guard(t), b.LocalAddr(), nil) }()
	check(t, a.Close())
	refused(t, <-held, ud.ErrClosed)
	said(t, b, string(make([]byte, 1000)))
}
