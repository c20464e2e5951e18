// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs/ud"
)

// The requirements of golang.org/x/net/nettest, as far as they apply to datagrams.

var longAgo = time.Unix(233431200, 0)

// conns returns two connected ends.
func conns(t testing.TB) (a, b *ud.PacketConn) {
	t.Helper()
	left, right := wire(t)
	server, err := ud.New(right, ud.Options{})
	check(t, err)
	client, err := ud.Dial(guard(t), left, server.LocalAddr(), ud.Options{})
	check(t, err)
	a, b = client.PacketConn(), server.PacketConn()
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	return a, b
}

// timedOut checks that an error is a timeout of package net.
func timedOut(t testing.TB, err error) {
	t.Helper()
	var failed net.Error
	if !errors.As(err, &failed) || !failed.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestConnPingPong(t *testing.T) {
	a, b := conns(t)
	buffer := make([]byte, 100)
	for i := range 100 {
		n, err := a.Write([]byte(text(i)))
		if check(t, err); n != len(text(i)) {
			t.Fatalf("got %d bytes written", n)
		}
		n, from, err := b.ReadFrom(buffer)
		if check(t, err); string(buffer[:n]) != text(i) || from != a.LocalAddr() {
			t.Fatalf("got %q from %v", buffer[:n], from)
		}
		_, err = b.WriteTo(buffer[:n], from)
		check(t, err)
		n, err = a.Read(buffer)
		if check(t, err); string(buffer[:n]) != text(i) {
			t.Fatalf("got the response %q", buffer[:n])
		}
	}
	if a.RemoteAddr() != b.LocalAddr() || a.LocalAddr().Network() != "roce" {
		t.Errorf("got addresses %v and %v", a.LocalAddr(), a.RemoteAddr())
	}
}

func TestConnCutsShort(t *testing.T) {
	a, b := conns(t)
	_, err := a.Write([]byte("0123456789"))
	check(t, err)
	_, err = a.Write([]byte("next"))
	check(t, err)
	buffer := make([]byte, 4)
	for _, want := range []string{"0123", "next"} {
		if n, err := b.Read(buffer); err != nil || string(buffer[:n]) != want {
			t.Errorf("got %q, %v; want %q", buffer[:n], err, want)
		}
	}
}

func TestConnRefusesAddresses(t *testing.T) {
	_, b := conns(t)
	for _, to := range []net.Addr{nil, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4791}, ud.Addr{}} {
		if _, err := b.WriteTo([]byte("x"), to); err == nil {
			t.Errorf("a message to %v was written", to)
		}
	}
	if _, err := b.Write([]byte("x")); err == nil { // it has no peer
		t.Error("a message without a destination was written")
	}
}

func TestConnPastTimeout(t *testing.T) {
	a, b := conns(t)
	check(t, a.SetDeadline(longAgo))
	_, err := a.Write(make([]byte, 10))
	timedOut(t, err)
	_, err = a.Read(make([]byte, 10))
	timedOut(t, err)
	check(t, a.SetDeadline(time.Time{}))
	_, err = a.Write([]byte("in time"))
	check(t, err)
	buffer := make([]byte, 10)
	n, err := b.Read(buffer)
	if check(t, err); string(buffer[:n]) != "in time" {
		t.Errorf("%q", buffer[:n])
	}
}

func TestConnPresentTimeout(t *testing.T) {
	a, _ := conns(t)
	result := make(chan error)
	for range 2 { // both wait, and both return the error
		go func() {
			_, err := a.Read(make([]byte, 10))
			result <- err
		}()
	}
	time.Sleep(10 * time.Millisecond) // usually enough for them to wait
	check(t, a.SetReadDeadline(longAgo))
	timedOut(t, <-result)
	timedOut(t, <-result)
}

func TestConnFutureTimeout(t *testing.T) {
	a, _ := conns(t)
	check(t, a.SetDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := a.Read(make([]byte, 10))
	timedOut(t, err)
	eventually(t, "the end of writing", func() bool {
		_, err = a.Write(make([]byte, 10))
		return err != nil
	})
	timedOut(t, err)
	check(t, a.SetWriteDeadline(time.Time{}))
	_, err = a.Write(make([]byte, 10))
	check(t, err)
	_, err = a.Read(make([]byte, 10))
	timedOut(t, err)
}

// TestConnMovedTimeout moves a deadline later, and earlier while a goroutine may wait for it.
func TestConnMovedTimeout(t *testing.T) {
	a, b := conns(t)
	result := make(chan error)
	read := func() {
		_, err := a.Read(make([]byte, 10))
		result <- err
	}
	check(t, a.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	check(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
	go read()
	time.Sleep(100 * time.Millisecond) // the first deadline would have passed
	_, err := b.WriteTo([]byte("x"), a.LocalAddr())
	check(t, err)
	check(t, <-result)
	go read()
	check(t, a.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	timedOut(t, <-result)
}

func TestConnCloseWakes(t *testing.T) {
	a, b := conns(t)
	result := make(chan error)
	for _, c := range []*ud.PacketConn{a, b} {
		go func() {
			_, err := c.Read(make([]byte, 10))
			result <- err
		}()
		check(t, c.Close())
		refused(t, <-result, net.ErrClosed)
		_, err := c.Write([]byte("x"))
		refused(t, err, net.ErrClosed)
		refused(t, c.SetDeadline(time.Time{}), net.ErrClosed)
		check(t, c.Close())
	}
}

// TestConnRacy reads, writes and sets deadlines from many goroutines.
func TestConnRacy(t *testing.T) {
	a, b := conns(t)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			buffer := make([]byte, 1024)
			for range 20 {
				check(t, a.SetReadDeadline(time.Now().Add(time.Millisecond)))
				_, _ = a.Read(buffer)
			}
		})
		all.Go(func() {
			for range 20 {
				check(t, b.SetWriteDeadline(time.Now().Add(time.Duration(i)*time.Millisecond)))
				_, _ = b.WriteTo([]byte("data"), a.LocalAddr())
			}
		})
		all.Go(func() {
			for range 20 {
				_ = a.LocalAddr()
				_ = a.RemoteAddr()
			}
		})
	}
	all.Wait()
}
