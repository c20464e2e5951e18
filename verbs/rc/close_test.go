// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// TestAllReceiversLearnOfTheEnd checks that all waiting receivers return, although only one of them polls the
// completions of the end.
func TestAllReceiversLearnOfTheEnd(t *testing.T) {
	a, b := pair(t, rc.Options{})
	const receivers = 5
	ended := make(chan error, receivers)
	for range receivers {
		go func() {
			for {
				m, err := b.Recv(context.Background())
				if err != nil {
					ended <- err
					return
				}
				m.Release()
			}
		}()
	}
	for i := range 100 {
		check(t, a.Send(guard(t), []byte(text(i))))
	}
	check(t, a.Close())
	for range receivers {
		select {
		case err := <-ended:
			refused(t, err, rc.ErrDisconnected)
		case <-guard(t).Done():
			t.Fatal("a receiver still waits after the end")
		}
	}
	other, _ := pair(t, rc.Options{})
	canceled, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 2)
	go func() { _, err := other.Recv(context.Background()); waits <- err }()
	go func() { _, err := other.Recv(canceled); waits <- err }()
	cancel()
	refused(t, <-waits, context.Canceled)
}

// TestCloseSaysWhatIsLost checks the error of Close when the peer has not received all data in time.
func TestCloseSaysWhatIsLost(t *testing.T) {
	left, right := wire(t)
	a, b := linked(t, left, right, rc.Options{Linger: time.Millisecond}, rc.Options{RecvDepth: 2})
	for i := range 10 {
		check(t, a.Send(guard(t), []byte(text(i))))
	}
	err := a.Close()
	refused(t, err, rc.ErrUnacknowledged)
	// The peer has two receives, and may not have acknowledged them in that time.
	if !regexp.MustCompile(`: (8|9|10) requests within 1ms; call Flush before, or increase Options\.Linger$`).MatchString(err.Error()) {
		t.Error(err)
	}
	check(t, a.Close())
	said(t, b, text(0))
}

// TestAddressesStay checks that the addresses are available after Close.
func TestAddressesStay(t *testing.T) {
	a, b := pair(t, rc.Options{})
	local, peer := a.LocalAddr(), a.RemoteAddr()
	check(t, a.Close())
	check(t, b.Close())
	if a.LocalAddr() != local || a.RemoteAddr() != peer || !local.IsValid() || b.RemoteAddr() != local {
		t.Errorf("after Close: got %[3]v and %[4]v, want %[1]v and %[2]v", local, peer, a.LocalAddr(), a.RemoteAddr())
	}
}

// TestClosedRegion checks that a request with a closed region is refused, and the connection continues; a region of a
// closed connection is already closed.
func TestClosedRegion(t *testing.T) {
	a, b := pair(t, rc.Options{})
	r, err := a.NewRegion(100, 0)
	check(t, err)
	later, err := a.NewRegion(100, 0)
	check(t, err)
	check(t, r.Close())
	refused(t, a.Do(guard(t), rc.Request{Opcode: verbs.WRSend, Region: r, Length: 10}), verbs.ErrObjectClosed)
	check(t, a.Send(guard(t), []byte("on")))
	said(t, b, "on")
	check(t, a.Close())
	check(t, later.Close())
}

// TestIDsRefuse checks that both ends refuse options that connections by ids do not support.
func TestIDsRefuse(t *testing.T) {
	left, right := wire(t)
	for _, o := range []rc.Options{
		{Type: verbs.QPTypeUC}, {Timeout: time.Millisecond}, {PrivateData: make([]byte, 197)}, {RecvDepth: 1 << 20}, {SendDepth: 1 << 20},
	} {
		_, err := rc.Listen(right, at, o)
		refused(t, err, verbs.ErrInvalid)
		_, err = rc.DialAddr(guard(t), left, at, o)
		refused(t, err, verbs.ErrInvalid)
	}
	_, err := rc.DialAddr(guard(t), left, at, rc.Options{PrivateData: make([]byte, 57)})
	refused(t, err, verbs.ErrInvalid)
}

// TestRejectionIsRead checks that the client's error contains the text of the server's program.
func TestRejectionIsRead(t *testing.T) {
	e := &rc.RejectedError{Err: errors.New("rejected"), PrivateData: append([]byte("the house is full"), 0, 0)}
	if got := e.Error(); got != `rejected: "the house is full"` {
		t.Error(got)
	}
	for _, data := range [][]byte{nil, {0, 0}, {0xFF, 0xFE}} {
		if got := (&rc.RejectedError{Err: net.ErrClosed, PrivateData: data}).Error(); got != net.ErrClosed.Error() {
			t.Error(got)
		}
	}
}
