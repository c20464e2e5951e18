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

// TestAllReceiversLearnOfTheEnd: the completions of the end are taken by one of those who wait.
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
			t.Fatal("a receiver waits for ever")
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

// TestCloseSaysWhatIsLost: a peer that does not receive has not all when the time of Close is over.
func TestCloseSaysWhatIsLost(t *testing.T) {
	left, right := wire(t)
	a, b := linked(t, left, right, rc.Options{Linger: time.Millisecond}, rc.Options{RecvDepth: 2})
	for i := range 10 {
		check(t, a.Send(guard(t), []byte(text(i))))
	}
	err := a.Close()
	refused(t, err, rc.ErrUnacknowledged)
	// The peer has two receives; of these it may not have said in that time that they were taken.
	if !regexp.MustCompile(`: (8|9|10) requests within 1ms; call Flush before, or raise Options\.Linger$`).MatchString(err.Error()) {
		t.Error(err)
	}
	check(t, a.Close())
	said(t, b, text(0))
}

// TestAddressesStay: who has gone can still be named.
func TestAddressesStay(t *testing.T) {
	a, b := pair(t, rc.Options{})
	local, peer := a.LocalAddr(), a.RemoteAddr()
	check(t, a.Close())
	check(t, b.Close())
	if a.LocalAddr() != local || a.RemoteAddr() != peer || !local.IsValid() || b.RemoteAddr() != local {
		t.Errorf("%v and %v are %v and %v after Close", local, peer, a.LocalAddr(), a.RemoteAddr())
	}
}

// TestClosedRegion: a request that names one is refused, and the connection goes on; one of a connection that is
// closed is closed already.
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

// TestIDsRefuse: what connections by ids cannot have is refused at once, by both ends.
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

// TestRejectionIsRead: the client's error has what the server's program says.
func TestRejectionIsRead(t *testing.T) {
	e := &rc.RejectedError{Err: errors.New("rejected"), PrivateData: append([]byte("the house is full"), 0, 0)}
	if got := e.Error(); got != `rejected; it says "the house is full"` {
		t.Error(got)
	}
	for _, data := range [][]byte{nil, {0, 0}, {0xFF, 0xFE}} {
		if got := (&rc.RejectedError{Err: net.ErrClosed, PrivateData: data}).Error(); got != net.ErrClosed.Error() {
			t.Error(got)
		}
	}
}
