// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// raw is a client that sends arbitrary messages.
type raw struct {
	testing.TB
	*proto.Conn
	socket  *net.UnixConn
	memory  int // descriptors, after open
	signal  int
	calls   int
	channel provider.Handle // of a test that has one
	opened  proto.Opened
}

func (d *daemon) raw(t testing.TB) *raw {
	t.Helper()
	socket, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: d.path, Net: "unixpacket"})
	check(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	check(t, socket.SetDeadline(time.Now().Add(waittest.Limit)))
	return &raw{TB: t, Conn: proto.NewConn(socket, true), socket: socket, memory: -1, signal: -1, calls: -1}
}

// wake wakes the service.
func (r *raw) wake() {
	r.Helper()
	_, err := unix.Write(r.calls, binary.NativeEndian.AppendUint64(nil, 1))
	check(r, err)
}

// opened is one with a session.
func (d *daemon) opened(t testing.TB) *raw {
	t.Helper()
	r := d.raw(t)
	r.greet()
	return r
}

// greet makes a session.
func (r *raw) greet() {
	r.Helper()
	ask(r, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	var ends []int
	r.opened, ends = ask(r, proto.OpenDevice, &proto.OpenRequest{})
	r.Cleanup(func() { proto.CloseAll(ends) })
	r.memory, r.signal, r.calls = ends[0], ends[1], ends[2]
}

func ask[Q, G any](r *raw, command proto.Command[Q, G], request *Q) (G, []int) {
	r.Helper()
	packet, err := command.EncodeRequest(1, request)
	check(r, err)
	check(r, r.Send(packet))
	m, ends, err := r.Receive()
	check(r, err)
	if m.Kind != proto.Reply {
		cause, err := proto.DecodeFailure(m.Body)
		r.Fatalf("%s: %v %v", command.Name, cause, err)
	}
	grant, err := command.DecodeGrant(m.Body, anywhere{})
	check(r, err)
	return grant, ends
}

// anywhere is memory that a client does not look at.
type anywhere struct{}

func (anywhere) PlaceOf([]byte) (proto.Place, error) { return proto.Place{}, nil }
func (anywhere) At(proto.Place) ([]byte, error)      { return nil, nil }

// hungUp checks that the daemon has ended the connection.
func (r *raw) hungUp() {
	r.Helper()
	for {
		_, ends, err := r.Receive()
		proto.CloseAll(ends)
		if errors.Is(err, io.EOF) {
			return
		}
		check(r, err)
	}
}

// neighbours are two programs on one daemon that a hostile client must not disturb.
func neighbours(t testing.TB, r *rig) (stillWell func()) {
	t.Helper()
	a, b := newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
	there, back := a.ah(addressesB[0]), b.ah(addressesA[0])
	return func() {
		t.Helper()
		for range 10 {
			a.exchange(there, b, "there")
			b.exchange(back, a, "and back")
		}
	}
}

// alone waits until the daemon has only so many connections left.
func (d *daemon) alone(t testing.TB, n int) {
	t.Helper()
	eventually(t, "the others have gone", func() bool { return d.Clients() == n })
}

// An invalid or unexpected message ends its sender's connection, and nothing else.
func TestMalformedMessages(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	hello, err := proto.Hello.EncodeRequest(1, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version, Newest: proto.Version})
	check(t, err)
	create, err := proto.CreateQP.EncodeRequest(2, &provider.CreateQPRequest{})
	check(t, err)
	for name, packet := range map[string][]byte{
		"empty":                {},
		"half a header":        hello[:4],
		"half a hello":         hello[:12],
		"a long hello":         append(append([]byte(nil), hello...), 0),
		"too long for any":     make([]byte, proto.MaxMessage+1),
		"a reply":              {1, 0, byte(proto.Reply), 0, 1, 0, 0, 0},
		"an unknown kind":      {1, 0, 99, 0, 1, 0, 0, 0},
		"a command before all": create,
	} {
		t.Run(name, func(t *testing.T) {
			bad := r.a.raw(t)
			check(t, bad.Send(packet))
			bad.hungUp()
		})
		if name == "a command before all" {
			continue
		}
		t.Run(name+", with a session", func(t *testing.T) {
			bad := r.a.opened(t)
			if name != "half a hello" && name != "a long hello" {
				check(t, bad.Send(packet))
			} else {
				check(t, bad.Send(create[:len(create)-3]))
			}
			bad.hungUp()
		})
	}
	r.a.alone(t, 1)
	stillWell()
}

// A client without a session gets the missing step as an error, and so does one with excessive or repeated requests.
func TestWrongOrder(t *testing.T) {
	r := newRig(t, anyone)
	bad := r.a.raw(t)
	ask(bad, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: 1, Newest: 7})
	refused := func(want error, packet []byte, err error) {
		t.Helper()
		check(t, err)
		check(t, bad.Send(packet))
		m, _, err := bad.Receive()
		check(t, err)
		if cause, err := proto.DecodeFailure(m.Body); m.Kind != proto.Failure || err != nil || !errors.Is(cause, want) {
			t.Errorf("%+v: %v %v, want %v", m, cause, err, want)
		}
	}
	packet, err := proto.AllocPD.EncodeRequest(1, &proto.None{})
	refused(verbs.ErrInvalid, packet, err)
	packet, err = proto.OpenDevice.EncodeRequest(1, &proto.OpenRequest{Device: "nowhere"})
	refused(verbs.ErrInvalid, packet, err)
	packet, err = proto.Hello.EncodeRequest(1, &proto.HelloRequest{Magic: proto.Magic, Oldest: proto.Version + 1, Newest: 7})
	refused(verbs.ErrUnsupported, packet, err)
	_, ends := ask(bad, proto.OpenDevice, &proto.OpenRequest{})
	proto.CloseAll(ends)
	packet, err = proto.OpenDevice.EncodeRequest(1, &proto.OpenRequest{})
	refused(verbs.ErrBusy, packet, err)
	refused(verbs.ErrUnsupported, []byte{255, 255, byte(proto.Request), 0, 1, 0, 0, 0}, nil)
}

// Descriptors that a client sends are not accepted, and end its connection.
func TestUnwantedDescriptors(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	bad := r.a.opened(t)
	packet, err := proto.AllocPD.EncodeRequest(1, &proto.None{})
	check(t, err)
	many := make([]int, 200)
	for i := range many {
		many[i] = bad.memory
	}
	if err := bad.Send(packet, many...); err == nil { // before Linux 6.16
		bad.hungUp()
	} else if !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
	check(t, bad.socket.Close())
	r.a.alone(t, 1)
	stillWell()
}

// A client that sends and never reads is no longer read from, and affects no other client.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	bad := r.a.opened(t)
	packet, err := proto.Counters.EncodeRequest(1, &proto.None{})
	check(t, err)
	check(t, bad.socket.SetWriteDeadline(time.Now().Add(time.Second)))
	sent := 0
	for ; err == nil && sent < 1_000_000; sent++ {
		err = bad.Send(packet)
	}
	if !errors.Is(err, unix.EAGAIN) && !isTimeout(err) {
		t.Errorf("after %d requests: %v", sent, err)
	}
	stillWell()
	check(t, bad.socket.Close())
	r.a.alone(t, 1)
	stillWell()
}

func isTimeout(err error) bool {
	var netError net.Error
	return errors.As(err, &netError) && netError.Timeout()
}

// More commands wait than a client may have: those are refused, and the others go on.
func TestTooManyWaiting(t *testing.T) {
	r := newRig(t, anyone)
	bad := r.a.opened(t)
	for id := range uint32(maxWaiting + 1) {
		packet, err := proto.GetAsyncEvent.EncodeRequest(id, &proto.None{})
		check(t, err)
		check(t, bad.Send(packet))
	}
	m, _, err := bad.Receive()
	check(t, err)
	if cause, _ := proto.DecodeFailure(m.Body); m.ID != maxWaiting || !errors.Is(cause, verbs.ErrLimit) {
		t.Errorf("%+v: %v", m, cause)
	}
	check(t, bad.Send(proto.EncodeCancel(7, proto.Canceled)))
	if m, _, err = bad.Receive(); err != nil || m.ID != 7 || m.Kind != proto.Failure {
		t.Errorf("cancelled: %+v %v", m, err)
	}
	check(t, bad.Send(proto.EncodeCancel(99999, proto.Canceled))) // of no command
	ask(bad, proto.AllocPD, &proto.None{})
}

// TestWaitingTwice: a command that waits already is refused under the same number, and goes on.
func TestWaitingTwice(t *testing.T) {
	r := newRig(t, anyone)
	bad := r.a.opened(t)
	packet, err := proto.GetAsyncEvent.EncodeRequest(7, &proto.None{})
	check(t, err)
	check(t, bad.Send(packet))
	check(t, bad.Send(packet))
	m, _, err := bad.Receive()
	check(t, err)
	if cause, _ := proto.DecodeFailure(m.Body); m.ID != 7 || !errors.Is(cause, verbs.ErrInvalid) {
		t.Errorf("%+v: %v", m, cause)
	}
	check(t, bad.Send(proto.EncodeCancel(7, proto.Canceled)))
	if m, _, err = bad.Receive(); err != nil || m.ID != 7 || m.Kind != proto.Failure {
		t.Errorf("cancelled: %+v %v", m, err)
	}
}

// TestWriteDeadlineIsRenewed: a client that reads is served for longer than one that does not may take.
func TestWriteDeadlineIsRenewed(t *testing.T) {
	r := newRig(t, anyone)
	good := r.a.opened(t)
	c := r.a.youngest()
	c.out.mu.Lock()
	c.out.renewed = time.Now().Add(-writeTimeout)
	check(t, c.socket.SetWriteDeadline(c.out.renewed.Add(writeTimeout)))
	c.out.mu.Unlock()
	ask(good, proto.AllocPD, &proto.None{})
}

// Whatever a client does to its descriptors is its own affair.
func TestDescriptorGames(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for name, play := range map[string]func(t *testing.T, bad *raw){
		"truncate": func(t *testing.T, bad *raw) {
			for _, size := range []int64{0, int64(bad.opened.Size) * 2} {
				if err := unix.Ftruncate(bad.memory, size); !errors.Is(err, unix.EPERM) {
					t.Errorf("truncated to %d: %v", size, err)
				}
			}
		},
		"seal": func(t *testing.T, bad *raw) {
			if _, err := unix.FcntlInt(uintptr(bad.memory), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
				t.Errorf("sealed: %v", err)
			}
		},
		"scribble": func(t *testing.T, bad *raw) {
			_, err := unix.Pwrite(bad.memory, make([]byte, 1<<16), 0)
			check(t, err)
			noise := make([]byte, 1<<16)
			for i := range noise {
				noise[i] = 0xff
			}
			_, err = unix.Pwrite(bad.memory, noise, 0)
			check(t, err)
		},
		"make its end block, and fill it": func(t *testing.T, bad *raw) {
			check(t, unix.SetNonblock(bad.signal, false))
			for range 10_000 {
				if err := unix.Sendto(bad.signal, make([]byte, 1000), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil); err != nil {
					return
				}
			}
		},
		"close all": func(t *testing.T, bad *raw) {
			check(t, unix.Shutdown(bad.signal, unix.SHUT_RDWR))
		},
		"take the calls back, and have as many as there can be": func(t *testing.T, bad *raw) {
			_, err := unix.Write(bad.calls, binary.NativeEndian.AppendUint64(nil, math.MaxUint64-2))
			check(t, err)
			_, err = unix.Read(bad.calls, make([]byte, 8))
			check(t, err)
			check(t, unix.SetNonblock(bad.calls, true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := r.a.opened(t)
			_, _ = ask(bad, proto.CreateCQ, &provider.CreateCQRequest{Entries: 100, EventID: 1})
			play(t, bad)
			bad.wake()
			ask(bad, proto.AllocPD, &proto.None{})
			stillWell()
			check(t, bad.socket.Close())
		})
	}
	r.a.alone(t, 1)
	stillWell()
}

// A client that never takes its events: they are kept, each CQ's once, and the card does not wait.
func TestEventsAreOwed(t *testing.T) {
	s, err := newSignals()
	check(t, err)
	defer s.close()
	told := map[uint64]int{}
	for id := range uint64(5000) {
		s.notify(id)
		s.notify(id)
	}
	end := s.client
	var record [8]byte
	for len(told) < 5000 {
		n, err := unix.Read(end, record[:])
		if errors.Is(err, unix.EAGAIN) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil || n != 8 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		told[uint64(record[0])|uint64(record[1])<<8]++
	}
}

// TestEventsOfDestroyedCQsAreForgotten: of a client that takes no events, and makes and destroys CQs on and
// on, as many events are owed as there are CQs. Those of others still come.
func TestEventsOfDestroyedCQsAreForgotten(t *testing.T) {
	s, err := newSignals()
	check(t, err)
	defer s.close()
	owed := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.owed.Len()
	}
	stays := uint64(1)
	for ; owed() == 0; stays++ {
		s.notify(stays) // until the socket is full
	}
	const last = 1 << 40
	for id := range uint64(1000) {
		s.notify(last + 1 + id)
		s.forget(last + 1 + id)
	}
	s.notify(last)
	if n := owed(); n > 2 {
		t.Errorf("%d events are owed", n)
	}
	told := map[uint64]bool{}
	var record [8]byte
	for !told[last] {
		n, err := unix.Read(s.client, record[:])
		if errors.Is(err, unix.EAGAIN) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil || n != 8 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		told[binary.LittleEndian.Uint64(record[:])] = true
	}
	if len(told) != int(stays) {
		t.Errorf("%d events were told, want %d", len(told), stays)
	}
	eventually(t, "nothing is owed", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.delivering })
	s.notify(7) // at once, as before
	if _, err := unix.Read(s.client, record[:]); err != nil || record[0] != 7 {
		t.Errorf("%v, %v", record, err)
	}
}

// Half a connection is closed after a while; this is how long it may take.
func TestSilentClientIsHungUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, anyone)
	silent := r.a.raw(t)
	silent.hungUp() // after helloTimeout
	_, err := client.Devices(r.a.path)
	check(t, err)
}
