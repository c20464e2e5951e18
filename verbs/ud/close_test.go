// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// TestCloseWakes closes an endpoint that goroutines wait on.
func TestCloseWakes(t *testing.T) {
	for _, spin := range []bool{false, true} {
		left, _ := wire(t)
		e := listen(t, left, ud.Options{Spin: spin})
		const waiters = 3
		result := make(chan error, waiters)
		for range waiters {
			go func() {
				_, err := e.Recv(guard(t))
				result <- err
			}()
		}
		time.Sleep(10 * time.Millisecond) // usually enough for some to wait
		check(t, e.Close())
		for range waiters {
			err := <-result
			refused(t, err, ud.ErrClosed)
			refused(t, err, net.ErrClosed)
		}
		refused(t, e.Send(guard(t), addr("10.0.0.2", 5, 1), nil), ud.ErrClosed)
		refused(t, e.Join(group), ud.ErrClosed)
		refused(t, e.Leave(group), ud.ErrClosed)
		refused(t, e.Flush(guard(t)), ud.ErrClosed)
		_, err := e.Poll(make([]ud.Message, 1))
		refused(t, err, ud.ErrClosed)
		check(t, e.Close())
	}
}

// TestCloseFreesAll creates more endpoints than the device has room for, one after the other.
func TestCloseFreesAll(t *testing.T) {
	left, right := wire(t)
	b := listen(t, right, ud.Options{})
	attr, err := left.QueryDevice()
	check(t, err)
	for range attr.MaxCQ/2 + 10 {
		e, err := ud.New(left, ud.Options{RecvDepth: 1, SendDepth: 1, MaxMessage: 64})
		check(t, err)
		check(t, e.Send(context.Background(), b.LocalAddr(), nil))
		check(t, e.Join(group))
		check(t, e.Close())
	}
}

// TestCloseAmidst closes endpoints during traffic.
func TestCloseAmidst(t *testing.T) {
	left, right := wire(t)
	b := listen(t, right, ud.Options{})
	to := b.LocalAddr()
	for range 30 {
		e, err := ud.New(left, ud.Options{MaxHandles: 1})
		check(t, err)
		var all sync.WaitGroup
		for _, work := range []func() error{
			func() error { return e.Send(context.Background(), to, []byte("x")) },
			func() error { return e.Send(context.Background(), ud.Group(group), []byte("x")) },
			func() error { return e.Join(group) },
			func() error {
				if err := e.Leave(group); !errors.Is(err, verbs.ErrNoGID) {
					return err
				}
				return nil
			},
			func() error { return e.Flush(context.Background()) },
			func() error { m, err := e.Recv(context.Background()); m.Release(); return err },
		} {
			all.Go(func() {
				var err error
				for err == nil {
					err = work()
					_ = e.Stats()
				}
				if !isClosed(err) {
					t.Errorf("got %v, want %v", err, ud.ErrClosed)
				}
			})
		}
		time.Sleep(time.Millisecond)
		check(t, e.Close())
		all.Wait()
	}
}

// TestDeviceGone closes the context of an endpoint.
func TestDeviceGone(t *testing.T) {
	left, right := wire(t)
	a, b := listen(t, left, ud.Options{}), listen(t, right, ud.Options{})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("the last")))
	check(t, a.Join(group))
	said(t, b, "the last")
	result := make(chan error)
	go func() {
		_, err := a.Recv(guard(t))
		result <- err
	}()
	check(t, left.Close())
	err := <-result
	refused(t, err, verbs.ErrClosed)
	refused(t, err, net.ErrClosed)
	refused(t, a.Send(guard(t), b.LocalAddr(), nil), verbs.ErrClosed)
	check(t, a.Close())
}

func isClosed(err error) bool { return errors.Is(err, ud.ErrClosed) }
