// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// usage is what this user has at a daemon.
func (d *daemon) usage() peer.Limits {
	for _, u := range d.Users() {
		return u.Used
	}
	return peer.Limits{}
}

// All connections of a user share its limits; closed sessions and connections free their share.
func TestLimitsOfAUser(t *testing.T) {
	limits := peer.Limits{Connections: 3, Limits: hca.Limits{PDs: 2, CQs: 2, QPs: 2, MRs: 2, AHs: 2, SRQs: 1, CompChannels: 1, Memberships: 1, Attachments: 1}}
	r := newRig(t, Config{Limits: limits, PrivilegedGroup: -1})
	one, other := newProgram(t, r.a.dial(t)), newProgram(t, r.a.dial(t))
	third := r.a.dial(t)
	if _, err := client.Dial(r.a.path, ""); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a fourth connection: %v", err)
	}
	ctx, err := verbs.Open(third)
	check(t, err)
	_, noPD := ctx.AllocPD()
	_, noCQ := ctx.CreateCQ(1)
	_, noMR := one.pd.AllocMR(1, 0)
	_, noQP := one.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: one.cq, RecvCQ: one.cq})
	one.ah(addressesA[0])
	ah := other.ah(addressesA[0])
	_, noAH := one.pd.CreateAH(guard(t), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesA[0])}})
	group := netip.MustParseAddr("239.1.2.3")
	membership, err := one.ctx.JoinMulticast(group, verbs.JoinFullMember)
	check(t, err)
	_, noJoin := other.ctx.JoinMulticast(group, verbs.JoinFullMember)
	check(t, one.qp.AttachMcast(membership.MGID(), 0))
	check(t, one.qp.AttachMcast(membership.MGID(), 0)) // again is no other
	noAttachment := other.qp.AttachMcast(membership.MGID(), 0)
	for what, err := range map[string]error{"PD": noPD, "CQ": noCQ, "MR": noMR, "QP": noQP, "AH": noAH, "join": noJoin, "attach": noAttachment} {
		if !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	check(t, ah.Close())
	one.ah(addressesA[0])
	check(t, one.ctx.Close())
	newProgram(t, inPlaceOf(t, r.a, ctx))
	check(t, other.qp.AttachMcast(membership.MGID(), 0))
	if used := r.a.usage(); used.QPs != 2 || used.Attachments != 1 || used.Memberships != 0 || used.AHs != 0 {
		t.Errorf("used %+v", used)
	}
}

// inPlaceOf is a connection in place of one that is closed.
func inPlaceOf(t *testing.T, d *daemon, ctx *verbs.Context) *client.Client {
	t.Helper()
	check(t, ctx.Close())
	eventually(t, "the connections have gone", func() bool { return d.Clients() == 1 })
	return d.dial(t)
}

// Memory counts in whole pages, for all programs of the user, until the session ends.
func TestMemoryOfAUser(t *testing.T) {
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: 64 << 20}}, PrivilegedGroup: -1})
	one, other := newProgram(t, r.a.dial(t)), newProgram(t, r.a.dial(t))
	big, err := one.pd.AllocMR(40<<20, verbs.AccessLocalWrite)
	check(t, err)
	if _, err := other.pd.AllocMR(40<<20, 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("more than there is: %v", err)
	}
	if _, err := one.pd.AllocMR(60<<20, 0); !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), "the user may have 67108864, of which this program uses ") {
		t.Errorf("more than fits: %v", err)
	}
	big.Bytes()[5] = 7
	check(t, big.Close())
	again, err := one.pd.AllocMR(40<<20, 0) // the same pages
	check(t, err)
	if again.Bytes()[5] != 0 {
		t.Error("memory is not zeroed")
	}
	check(t, one.ctx.Close())
	eventually(t, "the memory is free", func() bool { return r.a.usage().Memory < 2<<20 })
	_, err = other.pd.AllocMR(40<<20, 0)
	check(t, err)
}

// The limits change while clients are there.
func TestSetLimits(t *testing.T) {
	r := newRig(t, anyone)
	p := newProgram(t, r.a.dial(t))
	r.a.SetLimits(peer.Limits{Limits: hca.Limits{QPs: 1}})
	if _, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a second queue pair: %v", err)
	}
	r.a.SetLimits(peer.Limits{})
	p.newQP()
}

// TestPrivilegedPorts: a port below net.ipv4.ip_unprivileged_port_start is for root alone, whatever its groups.
func TestPrivilegedPorts(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	for uid, want := range map[int]error{0: nil, 4711: unix.EACCES} {
		asUser(t, uid, func() error {
			c, err := client.Dial(r.a.path, "a")
			if err != nil {
				return err
			}
			defer c.Close()
			channel, err := provider.Do(c, provider.CreateEventChannel, provider.None{})
			if err != nil {
				return err
			}
			defer channel.Events.Close()
			id, err := provider.Do(c, provider.CreateID, provider.CreateIDRequest{Channel: channel.Channel, PortSpace: wire.PortSpaceUDP})
			if err != nil {
				return err
			}
			_, err = provider.Do(c, provider.BindID, provider.BindIDRequest{ID: id.ID, Address: netip.AddrPortFrom(addressesA[0], 1023)})
			if !errors.Is(err, want) {
				return fmt.Errorf("as user %d: %v, want %v", uid, err, want)
			}
			return nil
		})
	}
}

// Privileged Q_Keys are for root and the group's members. Tests run as root, or as an unprivileged user without groups.
func TestPrivilegedQKey(t *testing.T) {
	r := newRig(t, anyone)
	p := newProgram(t, r.a.dial(t))
	qp, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq})
	check(t, err)
	err = qp.Activate(0x80000001)
	if root := unix.Geteuid() == 0; root != (err == nil) || !root && !errors.Is(err, verbs.ErrPermission) {
		t.Errorf("as user %d: %v", unix.Geteuid(), err)
	}
}

// When the daemon ends, clients get the event and errors at once, also those that wait; what frees
// succeeds. Then they can dial again.
func TestDaemonEnds(t *testing.T) {
	r := newRig(t, anyone)
	p := newProgram(t, r.a.dial(t))
	ah := p.ah(addressesB[0])
	channel, err := p.ctx.CreateCompChannel()
	check(t, err)
	ended := make(chan error, 4)
	wait := func(do func(ctx context.Context) error) { go func() { ended <- do(guard(t)) }() }
	wait(func(ctx context.Context) error { var wcs [1]verbs.WC; _, err := p.cq.Wait(ctx, wcs[:]); return err })
	wait(func(ctx context.Context) error { _, err := channel.Get(ctx); return err })
	wait(func(ctx context.Context) error {
		event, err := p.ctx.GetAsyncEvent(ctx)
		if err != nil || event.Type != verbs.EventDeviceFatal {
			return errors.Join(errors.New("no fatal event"), err)
		}
		_, err = p.ctx.GetAsyncEvent(ctx)
		return err
	})
	check(t, r.a.Close())
	for range 3 {
		if err := <-ended; !errors.Is(err, verbs.ErrDeviceFatal) {
			t.Errorf("a wait ended with %v", err)
		}
	}
	_, query := p.ctx.QueryDevice()
	post := p.qp.PostRecv([]verbs.RecvWR{{}})
	_, poll := p.cq.Poll(make([]verbs.WC, 1))
	for what, err := range map[string]error{"query": query, "post": post, "poll": poll} {
		if !errors.Is(err, verbs.ErrDeviceFatal) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, object := range []interface{ Close() error }{ah, p.qp, p.cq, p.mr, p.pd, channel, p.ctx} {
		check(t, object.Close())
	}
	if _, err := client.Dial(r.a.path, ""); !errors.Is(err, verbs.ErrHost) {
		t.Errorf("dial without a daemon: %v", err)
	}
	again := startDaemon(t, Config{Devices: []Source{r.cards[0]}, PrivilegedGroup: -1})
	newProgram(t, again.dial(t))
}

// When a device fails under its daemon, its clients learn it; other devices go on.
func TestDeviceFails(t *testing.T) {
	n := newNetwork(t)
	left, _ := newCard(t, n, "left", addressesA...)
	right, _ := newCard(t, n, "right", addressesB...)
	d := startDaemon(t, Config{Devices: []Source{left, right}, PrivilegedGroup: -1})
	if names, err := client.Devices(d.path); err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	dial := func(name string) *client.Client {
		c, err := client.Dial(d.path, name)
		check(t, err)
		t.Cleanup(func() { check(t, c.Close()) })
		return c
	}
	failing, well, peer := newProgram(t, dial("left")), newProgram(t, dial("right")), newProgram(t, dial("right"))
	check(t, left.Close())
	<-failing.client.Done()
	if err := failing.client.Err(); verbs.KindOf(err) == nil {
		t.Error(err)
	}
	if _, err := failing.ctx.AllocPD(); verbs.KindOf(err) == nil {
		t.Error(err)
	}
	well.exchange(well.ah(addressesB[0]), peer, "to another program of the device")
	back, _ := newCard(t, n, "left", addressesA...)
	check(t, d.SetDevices(back, right))
	newProgram(t, dial("left"))
	if err := d.SetDevices(right, right); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("two devices of one name: %v", err)
	}
}

// A connection that breaks in the middle of commands leaves nothing: not while an address is asked
// for, not while objects are made.
func TestConnectionBreaks(t *testing.T) {
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	for range 20 {
		c, err := client.Dial(r.a.path, "")
		check(t, err)
		p := newProgram(t, c)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for {
					pd, err := p.ctx.AllocPD()
					if err != nil {
						return
					}
					_, _ = pd.AllocMR(1<<20, 0)
					_, _ = pd.CreateAH(ctx, &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesB[0])}})
				}
			})
		}
		all.Go(func() { _, _ = p.ctx.GetAsyncEvent(ctx) })
		time.Sleep(2 * time.Millisecond)
		r.a.youngest().hangUp()
		all.Wait()
		cancel()
		check(t, c.Close())
	}
	eventually(t, "all is free but the neighbours'", func() bool { return r.a.usage().PDs <= 1 })
	stillWell()
}

// youngest is the last connection that came. The caller may read what it had set before its last answer: the race
// detector does not see that an answer came after it.
func (s *Server) youngest() (youngest *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		if youngest == nil || c.since.After(youngest.since) {
			youngest = c
		}
	}
	youngest.out.mu.Lock()
	defer youngest.out.mu.Unlock()
	return youngest
}

// Goroutines end with their connections, in the daemon and in the program.
func TestNoGoroutineStays(t *testing.T) {
	r := newRig(t, anyone)
	before := runtime.NumGoroutine()
	for range 20 {
		c, err := client.Dial(r.a.path, "")
		check(t, err)
		newProgram(t, c)
		check(t, c.Close())
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

// Memory of a closed client is unmapped when nothing refers to it any more.
func TestMemoryIsUnmapped(t *testing.T) {
	r := newRig(t, anyone)
	before := mappings(t)
	for range 10 {
		c, err := client.Dial(r.a.path, "")
		check(t, err)
		newProgram(t, c)
		check(t, c.Close())
	}
	eventually(t, "no mapping is left", func() bool { runtime.GC(); return mappings(t) <= before })
}

// Connections that say nothing count, and those beyond the limit are told so, and take nothing: a user
// cannot use up the daemon's descriptors.
func TestSilentConnectionsCount(t *testing.T) {
	const most = 5
	r := newRig(t, Config{Limits: peer.Limits{Connections: most}, PrivilegedGroup: -1})
	for range most {
		r.a.raw(t)
	}
	eventually(t, "all are there", func() bool { return r.a.Clients() == most })
	for range 200 {
		if _, err := client.Dial(r.a.path, ""); !errors.Is(err, verbs.ErrLimit) {
			t.Fatalf("one more: %v", err)
		}
		r.a.raw(t) // does not even say hello
	}
	if n := r.a.Clients(); n != most {
		t.Errorf("%d connections", n)
	}
}

// A GID table longer than a message has room for is cut, and the client goes on.
func TestLongGIDTable(t *testing.T) {
	r := newRig(t, anyone)
	var many []netip.Addr
	for i := range proto.MaxGIDs + 50 {
		many = append(many, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	check(t, r.hosts[0].SetAddresses(many...))
	c := r.a.dial(t)
	table, err := provider.Do(c, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	if err != nil || len(table.Entries) != proto.MaxGIDs {
		t.Errorf("%d lines, %v", len(table.Entries), err)
	}
	if _, err := provider.Do(c, provider.AllocPD, provider.None{}); err != nil {
		t.Error(err)
	}
}
