// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// plug is a link whose port is replaced while the engine runs, as the sockets of an interface are. After the old port
// is removed and before the new one is added, no frames arrive and none can be reserved.
type plug struct {
	link.Link
	mu     sync.Mutex // the worker calls SetAsleep without the lease
	asleep bool
}

func (p *plug) SetAsleep(asleep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asleep = asleep
	p.Link.SetAsleep(asleep)
}

// change runs in ChangeLink.
func (p *plug) change(to link.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Link = to
	to.SetAsleep(p.asleep)
}

// unplugged is a link without sockets.
type unplugged struct{}

func (unplugged) Receive() int       { return 0 }
func (unplugged) Next() []byte       { return nil }
func (unplugged) Behind(int) []byte  { return nil }
func (unplugged) Room() int          { return 0 }
func (unplugged) Numbers() bool      { return false }
func (unplugged) Release()           {}
func (unplugged) Reserve() []byte    { return nil }
func (unplugged) Commit(int)         {}
func (unplugged) Flush() bool        { return true }
func (unplugged) TakeBack()          {}
func (unplugged) TakenBack() int     { return 0 }
func (unplugged) Refused() int       { return 0 }
func (unplugged) Descriptors() []int { return nil }
func (unplugged) SetAsleep(bool)     {}
func (unplugged) Close() error       { return nil }

// descriptive is a port with a descriptor, as links of interfaces have.
type descriptive struct {
	link.Port
	fd int
}

func newDescriptive(t *testing.T, p link.Port) descriptive {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	p.SetWake(func() {
		one := [8]byte{1}
		_, _ = unix.Write(fd, one[:])
	})
	return descriptive{p, fd}
}

func (d descriptive) Descriptors() []int { return []int{d.fd} }

func (d descriptive) SetAsleep(asleep bool) {
	d.Port.SetAsleep(asleep)
	if !asleep {
		var count [8]byte
		_, _ = unix.Read(d.fd, count[:])
	}
}

func (d descriptive) Close() error {
	d.SetWake(func() {})
	return errors.Join(d.Port.Close(), unix.Close(d.fd))
}

// newPlugs returns two engines on a wire, with workers; the receiver's link can be changed.
func newPlugs(t *testing.T) (network *link.Network, a, b *rig, at *plug) {
	t.Helper()
	network = link.NewNetwork(0)
	at = &plug{Link: newDescriptive(t, network.Port(wire.MAC{2, 2}))}
	a, b = newStation(t, network.Port(wire.MAC{2, 1}), true), newStation(t, at, true)
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{peerGID}) })
	return network, a, b, at
}

// unplug waits until the port has no frames, removes it and closes it.
func (r *rig) unplug(at *plug) {
	r.Helper()
	was := at.Link
	if !r.engine.Until(func() bool { return r.engine.round.taken == 0 && was.Receive() == 0 }, waittest.Limit) {
		r.Fatal("the port is not empty")
	}
	r.engine.ChangeLink(func() { at.change(unplugged{}) })
	if err := was.Close(); err != nil {
		r.Fatal(err)
	}
}

// plugIn connects the engine to a new port.
func (r *rig) plugIn(network *link.Network, at *plug) {
	r.Helper()
	port := newDescriptive(r.T, network.Port(wire.MAC{2, 2}))
	r.engine.ChangeLink(func() { at.change(port) })
}

// When the link changes, the sleeping worker or leader is woken by frames from the new one.
func TestSleepersFollowTheLink(t *testing.T) {
	network, a, b, at := newPlugs(t)
	for range 30 {
		b.asleep()
		b.unplug(at)
		b.plugIn(network, at)
		frameWith(a, b)
		wait(t, "the message", func() bool { return b.pollOrArm() == 1 })

		b.asleep()
		got := b.background(t.Context(), nil)
		b.leads()
		b.unplug(at)
		b.plugIn(network, at)
		frameWith(a, b)
		<-got
	}
}

// Requests posted while there is no port stay in their queue pair, and are sent when a port is added.
func TestRequestsWaitForTheLink(t *testing.T) {
	network, a, b, at := newPlugs(t)
	a.engine.Do(func() { a.engine.tables.setAddresses([]wire.GID{peerGID}) })
	b.engine.Do(func() { b.engine.tables.setAddresses([]wire.GID{ownGID}) })
	b.unplug(at)
	for range rigDepth {
		b.send.Put(&ring.Send{Opcode: ib.WRSend, RemoteQPN: testQP, RemoteQKey: testQKey})
	}
	b.send.Publish()
	if b.doorbell.Ring(3) {
		b.engine.Kick(b.session)
	}
	for range rigDepth {
		a.postRecv(1, piece(0, 200))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if sent := b.engine.Counters().Sent; sent != 0 {
		t.Fatalf("sent %d packets without a link", sent)
	}
	b.plugIn(network, at)
	arrived := 0
	wait(t, "the messages", func() bool {
		arrived += a.pollOrArm()
		return arrived == rigDepth
	})
	if c := b.engine.Counters(); c.Sent != rigDepth || c.Dropped() != 0 {
		t.Errorf("%+v", c)
	}
}

// Until times out, and runs rounds meanwhile.
func TestUntil(t *testing.T) {
	r := newRig(t)
	r.postRecv(7, piece(0, 200))
	r.link.in = [][]byte{datagram(nil)}
	if !r.engine.Until(func() bool { return r.engine.counters.Delivered == 1 }, waittest.Limit) {
		t.Error("Until ran no round")
	}
	if r.engine.Until(func() bool { return false }, 0) {
		t.Error("Until did not call done")
	}
}
