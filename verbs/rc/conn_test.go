// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, spin := range []bool{false, true} {
		a, b := pair(t, rc.Options{Spin: spin})
		ctx := guard(t)
		const count = 1000
		go func() {
			for i := range count {
				if err := a.Send(ctx, []byte(text(i))); err != nil {
					t.Error(err)
				}
			}
		}()
		for i := range count {
			said(t, b, text(i))
		}
		n, err := b.SendBatch(ctx, []rc.Message{{Data: []byte("one")}, {Imm: 7, HasImm: true}, {Data: make([]byte, 4096)}})
		if check(t, err); n != 3 {
			t.Errorf("got %d queued", n)
		}
		check(t, b.Flush(ctx))
		var got [8]rc.Message
		n, err = a.RecvBatch(ctx, got[:])
		if check(t, err); n != 3 || string(got[0].Data) != "one" || got[0].HasImm || !got[1].HasImm || got[1].Imm != 7 || got[2].Length != 4096 {
			t.Errorf("got %d messages: %v", n, got[:n])
		}
		a.Release(got[:n])
		a.Release(got[:n])
		got[0].Release()
		if n, err := a.Poll(got[:]); n != 0 || err != nil {
			t.Errorf("got %d more messages, %v", n, err)
		}
		if done, left, err := b.Completed(); done != 3 || left != 0 || err != nil {
			t.Errorf("got %d done, %d outstanding, %v", done, left, err)
		}
	}
}

// TestBothWays sends and receives in many goroutines at both ends concurrently: each message arrives once.
func TestBothWays(t *testing.T) {
	t.Parallel()
	const senders, each, receivers = 3, 400, 2
	for _, spin := range []bool{false, true} {
		a, b := pair(t, rc.Options{Spin: spin, RecvDepth: 32, SendDepth: 16})
		var all sync.WaitGroup
		for _, c := range []*rc.Conn{a, b} {
			ctx, done := context.WithCancel(guard(t))
			seen := make(chan string, senders*each)
			for range receivers {
				all.Go(func() { collect(t, ctx, c, seen) })
			}
			for sender := range senders {
				all.Go(func() {
					for i := range each {
						if err := c.Send(guard(t), []byte(fmt.Sprint(sender, " ", i))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Go(func() {
				messages := map[string]bool{}
				for range senders * each {
					messages[<-seen] = true
				}
				if done(); len(messages) != senders*each {
					t.Errorf("got %d different messages, want %d", len(messages), senders*each)
				}
			})
		}
		all.Wait()
	}
}

func collect(t testing.TB, ctx context.Context, c *rc.Conn, seen chan<- string) {
	messages := make([]rc.Message, 16)
	for {
		n, err := c.RecvBatch(ctx, messages)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		}
		for _, m := range messages[:n] {
			seen <- string(m.Data)
		}
		c.Release(messages[:n])
	}
}

// TestSlowReceiver checks that a peer that does not receive blocks the sender, and that no message is lost.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rc.Options{RecvDepth: 4, SendDepth: 4})
	ctx := guard(t)
	var kept [4]rc.Message
	for i := range 8 {
		check(t, a.Send(ctx, []byte(text(i))))
	}
	for i := range kept {
		kept[i] = receive(t, b)
	}
	_, err := b.Recv(ctx)
	refused(t, err, rc.ErrKept)
	refused(t, err, unix.ENOBUFS)
	full, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() { result <- a.Send(full, []byte("one too many")) }()
	cancel()
	refused(t, <-result, context.Canceled)
	_, err = a.TryPost([]rc.Request{{Opcode: verbs.WRSend}})
	refused(t, err, verbs.ErrQueueFull)
	go func() { result <- a.Flush(ctx) }()
	b.Release(kept[:])
	for i := range 4 {
		said(t, b, text(4+i))
	}
	check(t, <-result)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	for _, to := range []string{addressB, "fd00::2"} {
		l, err := rc.Listen(right, netip.MustParseAddrPort("[::]:0"), rc.Options{PrivateData: []byte("hello yourself")})
		check(t, err)
		place := netip.AddrPortFrom(netip.MustParseAddr(to), l.Addr().Port())
		a, err := rc.DialAddr(guard(t), left, place, rc.Options{PrivateData: []byte("hello")})
		closed(t, a, err)
		b := accept(t, l)
		check(t, l.Close())
		if a.RemoteAddr() != place || b.LocalAddr() != place || a.LocalAddr() != b.RemoteAddr() {
			t.Errorf("got %v to %v, at the other end %v to %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
		}
		if mine, its := a.LocalQP(), b.RemoteQP(); mine.QPN != its.QPN || mine.GID != its.GID || mine.PSN != its.PSN {
			t.Errorf("got address %v, at the other end %v", mine, its)
		}
		if string(a.RemotePrivateData()[:14]) != "hello yourself" || string(b.RemotePrivateData()[:5]) != "hello" {
			t.Errorf("got private data %q and %q", a.RemotePrivateData(), b.RemotePrivateData())
		}
	}
}

// TestNew connects ends that exchange their addresses, reliable and unreliable.
func TestNew(t *testing.T) {
	t.Parallel()
	for _, kind := range []verbs.QPType{verbs.QPTypeRC, verbs.QPTypeUC} {
		left, right := wire(t)
		for _, source := range []int{0, 1} {
			a, b := joined(t, left, right, rc.Options{Type: kind, Source: addresses(addressA)[source]}, rc.Options{Type: kind, Source: addresses(addressB)[source]})
			ctx := guard(t)
			check(t, a.Send(ctx, []byte("there")))
			said(t, b, "there")
			check(t, b.Send(ctx, []byte("and back")))
			said(t, a, "and back")
			r := region(t, b, 100)
			check(t, a.Write(ctx, r.Remote(), 10, []byte("written")))
			check(t, a.Send(ctx, nil))
			if said(t, b, ""); string(r.Bytes()[10:17]) != "written" {
				t.Errorf("%q", r.Bytes())
			}
			err := a.Read(ctx, r.Remote(), 10, make([]byte, 7))
			if kind == verbs.QPTypeRC {
				check(t, err)
			} else {
				refused(t, err, verbs.ErrInvalid)
			}
			if a.RemoteQP().QPN != b.LocalQP().QPN || a.LocalAddr().Addr() != addresses(addressA)[source] || b.RemoteAddr().Addr() != a.LocalAddr().Addr() {
				t.Errorf("got addresses %v and %v", a.RemoteQP(), b.LocalQP())
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	for _, o := range []rc.Options{{Type: verbs.QPTypeUD}, {RecvDepth: -1}, {Reads: 1000}, {RecvInto: &rc.Region{}}} {
		_, err := rc.New(left, o)
		refused(t, err, verbs.ErrInvalid)
		_, err = rc.Listen(left, at, o)
		refused(t, err, verbs.ErrInvalid)
	}
	_, err := rc.New(left, rc.Options{Source: netip.MustParseAddr("10.9.9.9")})
	refused(t, err, verbs.ErrNoGID)
	_, err = rc.New(nil, rc.Options{})
	refused(t, err, verbs.ErrInvalid)
	_, err = rc.Listen(left, at, rc.Options{})
	refused(t, err, verbs.ErrAddrNotAvail)
	_, err = rc.Listen(right, at, rc.Options{Type: verbs.QPTypeUC})
	refused(t, err, verbs.ErrInvalid)
	_, err = rc.DialAddr(guard(t), left, at, rc.Options{Type: verbs.QPTypeUC})
	refused(t, err, verbs.ErrInvalid)
	_, err = rc.DialAddr(guard(t), left, netip.MustParseAddrPort("10.0.0.77:1"), rc.Options{})
	if err == nil {
		t.Error("got no error from a connection without a peer")
	}
	domain, err := rc.NewDomain(right, rc.DomainOptions{})
	closed(t, domain, err)
	_, err = rc.New(left, rc.Options{Domain: domain})
	refused(t, err, verbs.ErrInvalid)
	listen(t, right, rc.Options{})
	_, err = rc.Listen(right, at, rc.Options{})
	refused(t, err, verbs.ErrAddrInUse)
	a, err := rc.New(left, rc.Options{})
	closed(t, a, err)
	refused(t, a.Connect(rc.QPAddr{GID: verbs.GIDFromAddr(netip.MustParseAddr("fd00::2")), QPN: 5}), verbs.ErrInvalid)
	refused(t, a.Send(guard(t), make([]byte, 5000)), rc.ErrTooLong)
	refused(t, a.Send(guard(t), make([]byte, 5000)), unix.EMSGSIZE)
	over, cancel := context.WithCancel(guard(t))
	cancel()
	refused(t, a.Send(over, nil), context.Canceled)
	_, err = a.Recv(over)
	refused(t, err, context.Canceled)
	_, err = rc.DialAddr(over, left, at, rc.Options{})
	refused(t, err, context.Canceled)
}

// TestRejected checks the reason of a rejection.
func TestRejected(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	_, err := rc.DialAddr(guard(t), left, at, rc.Options{})
	var rejected *rc.RejectedError
	if !errors.As(err, &rejected) || rejected.Reason != 8 {
		t.Errorf("no listener: got %v", err)
	}
	refused(t, err, unix.ECONNREFUSED)
	l := listen(t, right, rc.Options{Admit: func(client netip.AddrPort, said []byte) ([]byte, error) {
		if client.Addr() != netip.MustParseAddr(addressA) {
			t.Errorf("got client %v", client)
		}
		if string(said[:6]) != "sesame" {
			return nil, errors.New("say the word")
		}
		return []byte("come in"), nil
	}})
	_, err = rc.DialAddr(guard(t), left, at, rc.Options{PrivateData: []byte("please")})
	if !errors.As(err, &rejected) || rejected.Reason != 28 || string(rejected.PrivateData[:12]) != "say the word" {
		t.Errorf("got %v, want a rejection", err)
	}
	a := dial(t, left, rc.Options{PrivateData: []byte("sesame")})
	if accept(t, l); string(a.RemotePrivateData()[:7]) != "come in" {
		t.Errorf("%q", a.RemotePrivateData())
	}
	refused(t, err, unix.ECONNREFUSED)
}

// TestManyClients checks that many clients of one server can use its region and its receives.
func TestManyClients(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{0, 8} {
		left, right := wire(t)
		domain, err := rc.NewDomain(right, rc.DomainOptions{RecvDepth: depth, MaxMessage: 256})
		closed(t, domain, err)
		shared := region(t, domain, 8)
		l := listen(t, right, rc.Options{Domain: domain, MaxMessage: 256})
		const clients, rounds = 6, 20
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				c := dial(t, left, rc.Options{})
				var counter rc.RemoteRegion
				m := receive(t, c)
				check(t, counter.UnmarshalBinary(m.Data))
				m.Release()
				for range rounds {
					_, err := c.FetchAdd(guard(t), counter, 0, 1)
					check(t, err)
					check(t, c.Send(guard(t), []byte("done")))
				}
				said(t, c, "well done")
				check(t, c.Close())
			})
			conn := accept(t, l)
			refused(t, domain.Close(), verbs.ErrBusy)
			all.Go(func() {
				handle, err := shared.Remote().MarshalBinary()
				check(t, errors.Join(err, conn.Send(guard(t), handle)))
				for range rounds {
					said(t, conn, "done")
				}
				check(t, conn.Send(guard(t), []byte("well done")))
				_, err = conn.Recv(guard(t))
				refused(t, err, rc.ErrDisconnected)
				check(t, conn.Close())
			})
		}
		all.Wait()
		if shared.Bytes()[0] != clients*rounds {
			t.Errorf("got a count of %d", shared.Bytes()[0])
		}
	}
}

// TestNetClosed checks the errors of calls after Close, and of waiting calls.
func TestNetClosed(t *testing.T) {
	t.Parallel()
	for _, o := range []rc.Options{{}, {Spin: true}, {SendDepth: 1, RecvDepth: 1}} {
		left, right := wire(t)
		l := listen(t, right, o)
		a := dial(t, left, o)
		accept(t, l) // and never receives
		ctx := guard(t)
		waits := []func() error{
			func() error { _, err := a.Recv(ctx); return err },
			func() error {
				for {
					if err := a.Send(ctx, nil); err != nil {
						return err
					}
				}
			},
			func() error { _, err := l.Accept(ctx); return err },
		}
		result := make(chan error, 2*len(waits))
		for _, wait := range waits {
			go func() { result <- wait() }()
			go func() { result <- wait() }()
		}
		check(t, a.Close())
		check(t, l.Close())
		for range cap(result) {
			err := <-result
			refused(t, err, rc.ErrClosed)
			refused(t, err, net.ErrClosed)
		}
		for _, wait := range waits {
			refused(t, wait(), rc.ErrClosed)
		}
		refused(t, a.Flush(guard(t)), rc.ErrClosed)
		_, err := a.Poll(make([]rc.Message, 1))
		refused(t, err, rc.ErrClosed)
		check(t, a.Close())
	}
}

// TestBriefClient checks that messages of a client that has disconnected before Accept are received.
func TestBriefClient(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	l := listen(t, right, rc.Options{})
	for range 20 {
		a := dial(t, left, rc.Options{})
		check(t, a.Send(guard(t), []byte("hello and good-bye")))
		check(t, a.Close())
		b := accept(t, l)
		said(t, b, "hello and good-bye")
		_, err := b.Recv(guard(t))
		refused(t, err, rc.ErrDisconnected)
		check(t, b.Close())
	}
}

// TestBacklog checks that Backlog connections are established before Accept, and that the next one waits.
func TestBacklog(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	l := listen(t, right, rc.Options{Backlog: 1})
	dial(t, left, rc.Options{})
	next := make(chan error, 1)
	go func() {
		a, err := rc.DialAddr(guard(t), left, at, rc.Options{})
		next <- errors.Join(err, a.Send(guard(t), []byte("the second")), a.Close())
	}()
	accept(t, l)
	said(t, accept(t, l), "the second")
	check(t, <-next)
}

// TestClosedListener checks that connections that were not accepted are closed, and the others stay open.
func TestClosedListener(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	l := listen(t, right, rc.Options{})
	a := dial(t, left, rc.Options{})
	b := accept(t, l)
	c := dial(t, left, rc.Options{})
	check(t, l.Close())
	_, err := c.Recv(guard(t))
	refused(t, err, rc.ErrDisconnected)
	check(t, a.Send(guard(t), []byte("goes on")))
	said(t, b, "goes on")
	_, err = rc.DialAddr(guard(t), left, at, rc.Options{})
	refused(t, err, unix.ECONNREFUSED)
}

// TestDialByName connects by host name and port, over the card that the route to the peer selects.
func TestDialByName(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	strangers, err := memnet.New(1).AddHost("stranger", netip.MustParseAddr("fd77::1"))
	check(t, err)
	card, err := hca.New(strangers)
	check(t, err)
	cards := []*verbs.Context{contextOn(t, card), left}
	l := listen(t, right, rc.Options{})
	a, err := rc.Dial(guard(t), cards, at.String(), rc.Options{})
	closed(t, a, err)
	if accept(t, l); a.RemoteAddr() != at {
		t.Errorf("got a connection to %v", a.RemoteAddr())
	}
	_, err = rc.Dial(guard(t), cards[:1], at.String(), rc.Options{})
	refused(t, err, verbs.ErrUnreachable, at.String())
	_, err = rc.Dial(guard(t), cards, "10.0.0.2", rc.Options{}) // without a port
	refused(t, err, verbs.ErrInvalid, "missing port")
}
