// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// everyID is the range of all objects.
var everyID = proto.EventRange{First: 1, Last: math.MaxUint64}

// asyncEvents is the program's end of a socket for events.
func (r *raw) asyncEvents(of proto.EventRange) *os.File {
	r.Helper()
	_, ends := ask(r, proto.OpenAsyncEvents, &of)
	if len(ends) != 1 {
		r.Fatalf("%d descriptors", len(ends))
	}
	check(r, unix.SetNonblock(ends[0], false))
	f := os.NewFile(uintptr(ends[0]), "events")
	r.Cleanup(func() { _ = f.Close() })
	return f
}

// TestAsyncEventsByDescriptor: events come as records, the last is that the device has failed, and then comes the end.
func TestAsyncEventsByDescriptor(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	events := c.asyncEvents(everyID)
	if err := refused(c, proto.OpenAsyncEvents, &proto.EventRange{First: 7, Last: 7}); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("once more: %v", err)
	}
	pd := c.allocPD()
	srq, _ := ask(c, proto.CreateSRQ, &provider.CreateSRQRequest{PD: pd, Attr: provider.SRQInitAttr{MaxWR: 16, MaxSGE: 1}, EventID: 1 << 40})
	ask(c, proto.ModifySRQ, &provider.ModifySRQRequest{SRQ: srq.SRQ, Attr: verbs.SRQAttr{Limit: 5}, Mask: verbs.SRQLimit})
	want := func(event verbs.EventType, id uint64) {
		t.Helper()
		var record [16]byte
		_, err := io.ReadFull(events, record[:])
		check(t, err)
		if got := binary.LittleEndian.Uint64(record[8:]); verbs.EventType(record[0]) != event || got != id {
			t.Errorf("%v: event %v of %#x, want %v", record, verbs.EventType(record[0]), got, event)
		}
	}
	want(verbs.EventSRQLimitReached, 1<<40)
	r.a.youngest().session.Faulted(verbs.ErrHost)
	want(verbs.EventDeviceFatal, 0)
	if n, err := events.Read(make([]byte, 16)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("then %d bytes, %v", n, err)
	}
}

// TestAsyncEventsAreClosed: a descriptor that is not needed takes nothing, however often that happens, and the range is
// free again.
func TestAsyncEventsAreClosed(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	low, high := proto.EventRange{First: 1, Last: 9}, proto.EventRange{First: 10, Last: 19}
	kept := c.asyncEvents(high)
	for range 2000 {
		end := c.asyncEvents(low)
		ask(c, proto.CloseAsyncEvents, &low)
		if n, err := end.Read(make([]byte, 16)); n != 0 || !errors.Is(err, io.EOF) {
			t.Fatalf("after the close: %d bytes, %v", n, err)
		}
		check(t, end.Close())
	}
	for _, not := range []proto.EventRange{low, {First: 10, Last: 18}, {}} {
		if err := refused(c, proto.CloseAsyncEvents, &not); !errors.Is(err, verbs.ErrNotFound) {
			t.Errorf("%v: %v", not, err)
		}
	}
	r.a.youngest().session.Faulted(verbs.ErrHost)
	var record [16]byte
	_, err := io.ReadFull(kept, record[:])
	check(t, err)
	if verbs.EventType(record[0]) != verbs.EventDeviceFatal {
		t.Errorf("event %v", verbs.EventType(record[0]))
	}
}

// TestAsyncEventsAreNotRead: a program that reads none of its events affects no other program, and leaves no objects.
func TestAsyncEventsAreNotRead(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	c := r.a.opened(t)
	c.asyncEvents(everyID)
	check(t, c.socket.SetDeadline(time.Now().Add(waittest.Limit)))
	pd := c.allocPD()
	srq, _ := ask(c, proto.CreateSRQ, &provider.CreateSRQRequest{PD: pd, Attr: provider.SRQInitAttr{MaxWR: 16, MaxSGE: 1}, EventID: 1})
	for range 20_000 {
		ask(c, proto.ModifySRQ, &provider.ModifySRQRequest{SRQ: srq.SRQ, Attr: verbs.SRQAttr{Limit: 5}, Mask: verbs.SRQLimit})
	}
	stillWell()
	check(t, c.socket.Close())
	r.a.alone(t, 1)
}

// TestAsyncEventsOfDestroyedObjects: after the reply to the command that destroyed an object, no further event of it is
// sent, whether the sender had it in hand or the socket was full.
func TestAsyncEventsOfDestroyedObjects(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	events := c.asyncEvents(everyID)
	pd := c.allocPD()
	noted := func(id uint64) provider.DestroySRQRequest { // an object that has an event
		srq, _ := ask(c, proto.CreateSRQ, &provider.CreateSRQRequest{PD: pd, Attr: provider.SRQInitAttr{MaxWR: 16, MaxSGE: 1}, EventID: id})
		ask(c, proto.ModifySRQ, &provider.ModifySRQRequest{SRQ: srq.SRQ, Attr: verbs.SRQAttr{Limit: 5}, Mask: verbs.SRQLimit})
		return provider.DestroySRQRequest{SRQ: srq.SRQ}
	}
	next := func() uint64 {
		if !waittest.Readable(t, int(events.Fd()), waittest.Limit) {
			t.Fatal("no event")
		}
		var record [16]byte
		_, err := io.ReadFull(events, record[:])
		check(t, err)
		return binary.LittleEndian.Uint64(record[8:])
	}
	const last = 1 << 40
	destroy := func(objects ...provider.DestroySRQRequest) (sent int) {
		t.Helper()
		for _, o := range objects {
			ask(c, proto.DestroySRQ, &o)
		}
		there, err := unix.IoctlGetInt(int(events.Fd()), unix.TIOCINQ)
		check(t, err)
		witness := noted(last)
		for range there / 16 {
			next()
		}
		if id := next(); id != last {
			t.Fatalf("an event of %d after it was destroyed", id)
		}
		ask(c, proto.DestroySRQ, &witness)
		return there / 16
	}
	for id := range uint64(300) {
		destroy(noted(id))
	}
	socket, err := r.a.youngest().asyncEvents[everyID].end.SyscallConn()
	check(t, err)
	check(t, socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 1) }))
	check(t, err)
	var many []provider.DestroySRQRequest
	for id := range uint64(60) {
		many = append(many, noted(id))
	}
	if sent := destroy(many...); sent >= len(many) {
		t.Errorf("the socket was not full: %d events were there", sent)
	}
}
