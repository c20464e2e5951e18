// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

// ends checks the errors of all calls after the end of a connection.
func ends(t testing.TB, c *rc.Conn, want error) {
	t.Helper()
	for _, call := range []func() error{
		func() error { _, err := c.Recv(guard(t)); return err },
		func() error { return c.Send(guard(t), []byte("?")) },
		func() error { return c.Read(guard(t), rc.RemoteRegion{Length: 8}, 0, make([]byte, 8)) },
		func() error { return c.Do(guard(t), rc.Request{Opcode: verbs.WRSend}) },
	} {
		refused(t, call(), want)
	}
}

// TestRefusedAccess checks that a request without permission is refused, and that later requests are flushed.
func TestRefusedAccess(t *testing.T) {
	t.Parallel()
	for _, spin := range []bool{false, true} {
		a, b := pair(t, rc.Options{Spin: spin})
		ctx := guard(t)
		closedMemory, err := b.NewRegion(100, verbs.AccessRemoteWrite)
		check(t, err)
		there := closedMemory.Remote()
		waits := make(chan error, 1)
		go func() { _, err := a.Recv(ctx); waits <- err }()
		check(t, a.Write(ctx, there, 0, []byte("allowed")))
		check(t, a.Flush(ctx))
		own := region(t, a, 50)
		posted, err := a.Post(ctx, []rc.Request{
			{Opcode: verbs.WRRDMAWrite, Region: own, Length: 1, Remote: there},
			{Opcode: verbs.WRRDMARead, Region: own, Length: 50, Remote: there, RemoteOffset: 3},
			{Opcode: verbs.WRRDMAWrite, Region: own, Length: 2, Remote: there},
		})
		if check(t, err); posted != 3 {
			t.Errorf("got %d posted", posted)
		}
		err = a.Flush(ctx)
		refused(t, err, unix.EACCES)
		var request *rc.RequestError
		if !errors.As(err, &request) || request.Opcode != verbs.WRRDMARead || request.Length != 50 || request.Remote != there {
			t.Errorf("%v", err)
		}
		if !strings.Contains(err.Error(), "behind another") || !strings.Contains(err.Error(), there.String()) {
			t.Errorf("got %v, want the flush and the reason", err)
		}
		if done, _, err := a.Completed(); done != 2 || !errors.Is(err, unix.EACCES) {
			t.Errorf("got %d done, %v", done, err)
		}
		refused(t, <-waits, unix.EACCES)
		ends(t, a, unix.EACCES)
		ends(t, b, rc.ErrAborted)
		check(t, b.Flush(ctx)) // it has sent no request
	}
}

// TestTooLongForThePeer sends a message that is longer than the peer's receives.
func TestTooLongForThePeer(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	a, b := linked(t, left, right, rc.Options{}, rc.Options{MaxMessage: 100})
	check(t, a.Send(guard(t), make([]byte, 100)))
	check(t, a.Send(guard(t), make([]byte, 101)))
	refused(t, a.Flush(guard(t)), unix.EREMOTEIO)
	ends(t, a, unix.EREMOTEIO)
	said(t, b, string(make([]byte, 100)))
	_, err := b.Recv(guard(t))
	refused(t, err, unix.EMSGSIZE)
	ends(t, b, unix.EMSGSIZE)
}

// TestDisconnected checks the errors after the peer has closed the connection, or its program was killed. Earlier
// messages are received.
func TestDisconnected(t *testing.T) {
	t.Parallel()
	for _, shared := range []int{0, 16} {
		for _, spin := range []bool{false, true} {
			left, right := wire(t)
			domain, err := rc.NewDomain(left, rc.DomainOptions{RecvDepth: shared})
			closed(t, domain, err)
			a, b := linked(t, left, right, rc.Options{Domain: domain, Spin: spin}, rc.Options{})
			check(t, b.Send(guard(t), []byte("the last")))
			waits := make(chan error)
			go func() {
				said(t, a, "the last")
				_, err := a.Recv(guard(t))
				waits <- err
			}()
			check(t, b.Close())
			err = <-waits
			refused(t, err, rc.ErrDisconnected)
			refused(t, err, unix.ECONNRESET)
			_, err = a.Poll(make([]rc.Message, 1))
			refused(t, err, rc.ErrDisconnected)
			ends(t, a, rc.ErrDisconnected)
			check(t, a.Close())
		}
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	left, right, err := cards()
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(left.Close(), right.Close())) })
	victim := sessionOf(t, right)
	a, _ := linked(t, sessionOf(t, left), victim, rc.Options{}, rc.Options{})
	check(t, victim.Close())
	_, err = a.Recv(guard(t))
	refused(t, err, rc.ErrDisconnected)
	ends(t, a, rc.ErrDisconnected)
}

// TestCutOff checks the errors when the peer no longer responds. Shared receives of a domain are not flushed in this
// case.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, shared := range []int{0, 16} {
		for _, spin := range []bool{false, true} {
			left, right, cut := cutWire(t)
			domain, err := rc.NewDomain(left, rc.DomainOptions{RecvDepth: shared})
			closed(t, domain, err)
			a, b := joined(t, left, right, rc.Options{Timeout: 20 * time.Millisecond, Domain: domain, Spin: spin, Linger: time.Millisecond}, rc.Options{})
			check(t, a.Send(guard(t), []byte("before")))
			said(t, b, "before")
			check(t, a.Flush(guard(t))) // the acknowledgement has arrived
			cut(true)
			check(t, a.Send(guard(t), []byte("after")))
			_, err = a.Recv(guard(t))
			refused(t, err, unix.ETIMEDOUT)
			var request *rc.RequestError
			if !errors.As(err, &request) || request.Opcode != verbs.WRSend || request.Length != 5 {
				t.Errorf("%v", err)
			}
			ends(t, a, unix.ETIMEDOUT)
		}
	}
}

// TestAbortedShared checks that a refused request of the peer ends a connection with shared receives.
func TestAbortedShared(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	domain, err := rc.NewDomain(right, rc.DomainOptions{RecvDepth: 4})
	closed(t, domain, err)
	a, b := linked(t, left, right, rc.Options{}, rc.Options{Domain: domain})
	check(t, a.Write(guard(t), rc.RemoteRegion{Length: 8, Key: 1}, 0, make([]byte, 8)))
	_, err = b.Recv(guard(t))
	refused(t, err, rc.ErrAborted)
	refused(t, err, unix.ECONNABORTED)
	refused(t, a.Flush(guard(t)), unix.EACCES)
}

// TestSharedReceivesComeBack checks that the receives of unreceived messages are posted again when the connection is
// closed.
func TestSharedReceivesComeBack(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	domain, err := rc.NewDomain(right, rc.DomainOptions{RecvDepth: 4, MaxMessage: 8192})
	closed(t, domain, err)
	l := listen(t, right, rc.Options{Domain: domain, MaxMessage: 8192})
	for range 10 {
		a := dial(t, left, rc.Options{MaxMessage: 8192, Linger: time.Millisecond})
		b := accept(t, l)
		for range 3 {
			check(t, a.Send(guard(t), make([]byte, 8192)))
		}
		check(t, a.Flush(guard(t)))
		check(t, b.Close())
		check(t, a.Close())
	}
}

// TestDeviceGone closes the context of a connection and a listener.
func TestDeviceGone(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	l := listen(t, right, rc.Options{})
	a := dial(t, left, rc.Options{})
	b := accept(t, l)
	result := make(chan error)
	go func() { _, err := b.Recv(guard(t)); result <- err }()
	go func() { _, err := l.Accept(guard(t)); result <- err }()
	check(t, right.Close())
	for range 2 {
		refused(t, <-result, verbs.ErrClosed)
	}
	err := b.Send(guard(t), nil)
	refused(t, err, verbs.ErrClosed)
	refused(t, err, net.ErrClosed)
	check(t, b.Close())
	check(t, l.Close())
	_, err = a.Recv(guard(t))
	refused(t, err, rc.ErrDisconnected)
}

// failing is a card that has failed: its commands return ErrDeviceFatal, and it is closed.
type failing struct{ provider.Provider }

func (f failing) Err() error { return verbs.ErrDeviceFatal }

// TestDeviceFailed checks that the failure of a device is not reported as net.ErrClosed, and that Close has no objects
// to free.
func TestDeviceFailed(t *testing.T) {
	t.Parallel()
	left, right, err := cards()
	check(t, err)
	t.Cleanup(func() { check(t, right.Close()) })
	c := contextOn(t, failing{left})
	l, err := rc.Listen(contextOn(t, right), at, rc.Options{})
	closed(t, l, err)
	a := dial(t, c, rc.Options{})
	domain, err := rc.NewDomain(c, rc.DomainOptions{RecvDepth: 2})
	closed(t, domain, err)
	b, err := rc.New(c, rc.Options{Domain: domain})
	closed(t, b, err)
	check(t, left.Close())
	for _, one := range []*rc.Conn{a, b} {
		_, err = one.Recv(guard(t))
		refused(t, err, verbs.ErrDeviceFatal)
		if errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, which is net.ErrClosed", err)
		}
	}
}

// TestNothingIsLeft creates, one after the other, more connections than the device has room for. Some of them fail.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	before := runtime.NumGoroutine()
	small := rc.Options{RecvDepth: 1, SendDepth: 1, MaxMessage: 8}
	l := listen(t, right, small)
	nobody := at.Addr()
	for i := range 300 {
		a, err := rc.DialAddr(guard(t), left, at, small)
		check(t, err)
		b, err := l.Accept(guard(t))
		check(t, err)
		check(t, errors.Join(a.Close(), b.Close()))
		if i%10 == 0 {
			_, err = rc.New(left, rc.Options{Source: nobody})
			refused(t, err, verbs.ErrNoGID)
		}
	}
	check(t, l.Close())
	eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+50 }) // other tests have some
	for _, c := range []*verbs.Context{left, right} {
		d, err := rc.NewDomain(c, rc.DomainOptions{RecvDepth: 3})
		check(t, err)
		region(t, d, 10)
		check(t, d.Close())
		check(t, d.Close())
		_, err = d.NewRegion(1, 0)
		refused(t, err, verbs.ErrObjectClosed)
		_, err = rc.New(c, rc.Options{Domain: d})
		refused(t, err, verbs.ErrObjectClosed)
	}
}

// TestCloseAmidst closes connections during traffic.
func TestCloseAmidst(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		left, right := wire(t)
		domain, err := rc.NewDomain(right, rc.DomainOptions{RecvDepth: 16 * (round % 2)})
		closed(t, domain, err)
		l := listen(t, right, rc.Options{Domain: domain, SendDepth: 4, Spin: round%3 == 0})
		a := dial(t, left, rc.Options{SendDepth: 4})
		b := accept(t, l)
		there := region(t, b, 64).Remote()
		ctx := guard(t)
		var all sync.WaitGroup
		for _, work := range []func(context.Context) error{
			func(ctx context.Context) error { return a.Send(ctx, []byte("x")) },
			func(ctx context.Context) error { return b.Send(ctx, []byte("x")) },
			func(ctx context.Context) error { return a.Write(ctx, there, 0, []byte("x")) },
			func(ctx context.Context) error { return a.Read(ctx, there, 0, make([]byte, 5)) },
			func(ctx context.Context) error { _, err := a.FetchAdd(ctx, there, 8, 1); return err },
			func(ctx context.Context) error { return errors.Join(a.Flush(ctx), a.Send(ctx, nil)) },
			func(ctx context.Context) error { _, _, err := a.Completed(); return errors.Join(err, a.Send(ctx, nil)) },
			func(ctx context.Context) error { m, err := a.Recv(ctx); m.Release(); return err },
			func(ctx context.Context) error { m, err := b.Recv(ctx); m.Release(); return err },
		} {
			all.Go(func() {
				var err error
				for err == nil {
					err = work(ctx)
				}
				if !errors.Is(err, rc.ErrClosed) && !errors.Is(err, rc.ErrDisconnected) {
					t.Errorf("%v", err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		if round%4 < 2 {
			check(t, a.Close())
		} else {
			check(t, b.Close())
		}
		all.Wait()
		check(t, errors.Join(a.Close(), b.Close()))
	}
}
