// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var deviceFatal = verbs.AsyncEvent{Type: verbs.EventDeviceFatal}

// awaitFatal reads events until the card has failed, and checks that no event follows.
func (s *station) awaitFatal() {
	s.Helper()
	for s.event() != deviceFatal {
	}
	_, err := s.ctx.GetAsyncEvent(guard(s))
	refused(s, err, verbs.ErrDeviceFatal)
	refused(s, err, unix.EIO, "interface has gone", "open the device again")
}

// Outstanding requests of a card that fails are completed in order, for waiting and polling programs; then all calls
// return the failure, except those that free.
func TestDeviceFails(t *testing.T) {
	w := newWirePair(t)
	deviceFails(t, w.a, w.b, "10.0.0.2", func() { w.a.device.fail(network.ErrGone) })
}

func TestDeviceFailsOnLink(t *testing.T) {
	l := newStations(t)
	deviceFails(t, l.a, l.b, "10.77.0.2", func() { check(t, l.A.Netlink().LinkDel(eth0(t, l.A))) })
	l.b.awaitFatal() // the other end of a pair is deleted too
	asleep(t, l.b.device)
}

func deviceFails(t *testing.T, s, peer *station, dest string, end func()) {
	ah, route := s.ah(dest), s.route(dest)
	membership := join(t, s, groupV4, verbs.JoinFullMember)
	check(t, s.qp.AttachMcast(gid(groupV4), 0))
	s.receive(0, 1, 2)
	idle, err := s.ctx.CreateCQ(4) // no queue completes to it
	check(t, err)
	busy, nothing := s.waitForAll(s.cq), s.waitForAll(idle)
	eventually(t, "waiting", func() bool { return waiting("verbs.(*CQ).Wait") == 2 })
	end()
	expect(t, <-busy, flushed(0), flushed(1), flushed(2))
	expect(t, <-nothing)
	s.awaitFatal()
	asleep(t, s.device)
	for name, do := range s.makes(t, peer, ah, route) {
		t.Run(name, func(t *testing.T) { refused(t, do(), unix.EIO, "device has failed") })
	}
	_, err = s.device.Statistics()
	check(t, err)
	check(t, s.qp.DetachMcast(gid(groupV4), 0))
	check(t, errors.Join(membership.Close(), s.qp.Close(), ah.Close(), s.mr.Close(), idle.Close(), s.cq.Close(), s.pd.Close()))
	check(t, s.ctx.Close())
	refused(t, s.device.Err(), verbs.ErrClosed)
	_, err = s.ctx.QueryDevice()
	refused(t, err, verbs.ErrClosed)
}

// waitForAll returns all completions of a CQ until the card has failed.
func (s *station) waitForAll(cq *verbs.CQ) <-chan []verbs.WC {
	ctx, done := guard(s), make(chan []verbs.WC, 1)
	go func() {
		var all []verbs.WC
		for {
			var wcs [2]verbs.WC
			n, err := cq.Wait(ctx, wcs[:])
			if all = append(all, wcs[:n]...); err != nil {
				refused(s, err, verbs.ErrDeviceFatal)
				done <- all
				return
			}
		}
	}()
	return done
}

// Requests of a queue pair that is still in INIT are flushed too; one in RESET has none.
func TestDeviceFailsInAnyState(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	reset, initial := a.newQP(defaultCap()), a.newQP(defaultCap())
	init := verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey}
	check(t, initial.Modify(&init, verbs.QPAttrState|verbs.QPAttrPKeyIndex|verbs.QPAttrPort|verbs.QPAttrQKey))
	a.receiveOn(initial, 5)
	a.post(a.send(1, a.ah("10.0.0.2"), w.b)) // it is not sent: there is no worker
	a.device.fail(network.ErrGone)
	a.device.fail(network.ErrGone)
	got := map[uint64]verbs.WCStatus{}
	var wcs [4]verbs.WC
	n, err := a.cq.Poll(wcs[:])
	check(t, err)
	for _, wc := range wcs[:n] {
		got[wc.ID] = wc.Status
	}
	if len(got) != 2 || got[5] != verbs.WCWRFlushErr || got[1] != verbs.WCWRFlushErr {
		t.Errorf("completions %v", got)
	}
	_, err = a.cq.Poll(wcs[:])
	refused(t, err, verbs.ErrDeviceFatal)
	a.expectEvents(deviceFatal)
	_, err = a.ctx.GetAsyncEvent(guard(t))
	refused(t, err, verbs.ErrDeviceFatal)
	check(t, errors.Join(reset.Close(), initial.Close()))
}

// The interface is deleted while groups are joined by both methods and messages are in flight: an event, an error from
// every call in progress, and nothing left after Close.
func TestInterfaceIsDeletedUnderLoad(t *testing.T) {
	for _, how := range []string{"deleted", "moved away"} {
		t.Run(how, func(t *testing.T) {
			hosts, state := labtest.Pair(t), t.TempDir()
			descriptors, routines := labtest.Descriptors(), runtime.NumGoroutine()
			a := newStation(t, open(t, hosts.A, WithStateDir(state)))
			b := newStation(t, open(t, hosts.B, WithStateDir(t.TempDir())))
			program := attachedProgram(t, hosts.A, "eth0")
			for _, group := range []string{groupV4, groupV6} {
				join(t, a, group, verbs.JoinFullMember)
				check(t, a.qp.AttachMcast(gid(group), 0))
			}
			if n := recordsIn(t, state); n != 1 {
				t.Fatalf("%d membership records", n)
			}
			all := a.keepBusy(a.toGroup(groupV4, 9, 12))
			b.keepBusy(b.toGroup(groupV6, 9, 12))
			eventually(t, "traffic", func() bool { return a.device.engine.Counters().Delivered > 100 })
			link := eth0(t, hosts.A)
			if how == "deleted" {
				check(t, hosts.A.Netlink().LinkDel(link))
			} else {
				check(t, hosts.A.Netlink().LinkSetNsFd(link, labtest.New(t, "hca-away").FD()))
			}
			for range 3 {
				refused(t, <-all, verbs.ErrDeviceFatal)
			}
			a.awaitFatal()
			check(t, a.ctx.Close())
			check(t, b.ctx.Close())
			if n := recordsIn(t, state); n != 0 {
				t.Errorf("%d membership records are left", n)
			}
			eventually(t, "the end of the program", func() bool {
				p, err := ebpf.NewProgramFromID(ebpf.ProgramID(program))
				if err == nil {
					check(t, p.Close())
				}
				return errors.Is(err, os.ErrNotExist)
			})
			quietGoroutines(t, routines)
			if leaked := labtest.Leaked(descriptors, labtest.Descriptors()); how == "deleted" && len(leaked) > 0 {
				t.Errorf("leaked: %v", leaked)
			}
		})
	}
}

// keepBusy posts, polls and waits until that fails, each in a goroutine that then sends the error.
func (s *station) keepBusy(wr verbs.SendWR) <-chan error {
	errs := make(chan error, 3)
	loop := func(do func() error) {
		go func() {
			for {
				if err := do(); err != nil && !errors.Is(err, verbs.ErrQueueFull) {
					errs <- err
					return
				}
				runtime.Gosched()
			}
		}()
	}
	loop(func() error { return s.qp.PostSend([]verbs.SendWR{wr}) })
	loop(func() error {
		return s.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.piece(0, slotLen)}}})
	})
	ctx := guard(s)
	loop(func() error { var wcs [4]verbs.WC; _, err := s.cq.Wait(ctx, wcs[:]); return err })
	return errs
}

func recordsIn(t *testing.T, dir string) int {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "memberships-*"))
	check(t, err)
	return len(list)
}

// A card works on an interface that was recreated under the same name.
func TestOpenAfterInterfaceIsDeleted(t *testing.T) {
	t.Parallel()
	host := labtest.New(t, "hca-a")
	for range 3 {
		addLink(t, host, netlink.NewVeth(attrs("eth0", 1500)), true)
		check(t, host.AddAddress("eth0", "10.77.0.1/24"))
		d, err := Open("eth0", InNamespace(host.Path()), WithStateDir(t.TempDir()))
		check(t, err)
		s := newStation(t, d)
		join(t, s, groupV4, verbs.JoinFullMember)
		check(t, host.Netlink().LinkDel(eth0(t, host)))
		s.awaitFatal()
		check(t, s.ctx.Close())
	}
}

// A goroutine that waits for a neighbour when the card fails gets the failure as its error, not a timeout.
func TestDeviceFailsWhileWaitingForANeighbour(t *testing.T) {
	l := newStations(t)
	done, route := make(chan error), l.a.route("10.77.0.99")
	go func() {
		_, err := l.a.pd.CreateAH(context.Background(), route)
		done <- err
	}()
	eventually(t, "waiting", func() bool { return waiting("Table).Await") == 1 })
	l.a.device.fail(network.ErrGone)
	refused(t, <-done, verbs.ErrDeviceFatal)
}

// A program may close its session while the card fails. The card does not access the session's memory after that: here
// that would kill the process.
func TestSessionIsClosedWhileTheCardFails(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{Memory: kernelMemory{}})
	failing := w.a.device.startFailing(network.ErrGone)
	check(t, s.ctx.Close())
	for _, session := range failing { // as fail does
		session.entry.Engine().Settle(session.entry, closeTimeout)
	}
}
