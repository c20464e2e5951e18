// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
	"github.com/roced/roced/verbs/server/peer"
)

// looker is the view of a user's program, which has no connection.
func (d *daemon) looker(uid uint32) *admin.View {
	return d.admin.View(admin.NewClient(&peer.Peer{UID: uid}, time.Now()))
}

// listed are all objects of a kind, page by page.
func listed(t *testing.T, look *admin.View, kind proto.ObjectKind) (all []proto.ClientObject) {
	t.Helper()
	for r := (proto.ListObjectsRequest{Kind: kind}); ; {
		page, err := look.ListObjects(r)
		check(t, err)
		if _, err := proto.ListObjects.EncodeGrant(1, &page, nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Objects...)
		if r.From = page.Next; !page.More {
			return all
		}
	}
}

// Objects are as their programs made them; more than fit a page are listed once each.
func TestListObjects(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	one, two := newProgram(t, r.a.dial(t)), newProgram(t, r.a.dial(t))
	const groups = 2*proto.PageEntries + 7
	for i := range groups {
		check(t, one.qp.AttachMcast(verbs.GID{0: 0xff, 1: 0x0e, 14: byte(i >> 8), 15: byte(i)}, 0))
	}
	group := netip.MustParseAddr("239.1.2.3")
	_, err := two.ctx.JoinMulticast(group, verbs.JoinSendOnlyFullMember)
	check(t, err)
	look := r.a.looker(0)
	for kind, want := range map[proto.ObjectKind]int{
		proto.PDs: 2, proto.QPs: 2, proto.MRs: 2, proto.Attachments: groups, proto.Memberships: 1, proto.SRQs: 0,
	} {
		list := listed(t, look, kind)
		if len(list) != want {
			t.Errorf("%d objects of kind %d, want %d", len(list), kind, want)
		}
		seen := map[string]bool{}
		for _, o := range list {
			if key := fmt.Sprint(o); seen[key] {
				t.Errorf("twice: %s", key)
			} else {
				seen[key] = true
			}
		}
	}
	list := listed(t, look, proto.QPs)
	first := slices.IndexFunc(list, func(o proto.ClientObject) bool { return o.Number == uint32(one.qp.Number()) })
	if first < 0 || list[first].State != verbs.QPStateRTS || list[first].Users != groups || list[first].QKey != testQKey || list[first].PID != uint32(os.Getpid()) {
		t.Errorf("%+v", list)
	}
	if m := listed(t, look, proto.Memberships)[0]; m.Full || m.Dest.Addr().Unmap() != group {
		t.Errorf("%+v", m)
	}
	if _, err := look.ListObjects(proto.ListObjectsRequest{Kind: 99}); !errors.Is(err, verbs.ErrInvalid) {
		t.Error(err)
	}
	far := proto.ObjectPlace{Client: 1, Place: 1<<32 - 1, Index: 1<<32 - 1}
	if page, err := look.ListObjects(proto.ListObjectsRequest{Kind: proto.QPs, From: far}); err != nil || page.More {
		t.Errorf("from a place that is none: %+v, %v", page, err)
	}
}

// TestNumbersAreUnique: objects of different clients have different numbers, and refer to its own client's objects.
func TestNumbersAreUnique(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	ended := newProgram(t, r.a.dial(t))
	newProgram(t, r.a.dial(t))
	check(t, ended.ctx.Close())
	newProgram(t, r.a.dial(t)) // it may have the slot of the one that has ended
	newProgram(t, r.a.dial(t))
	look := r.a.looker(0)
	owner := map[proto.ObjectKind]map[provider.Handle]uint64{}
	for _, kind := range []proto.ObjectKind{proto.PDs, proto.CQs, proto.MRs} {
		owner[kind] = map[provider.Handle]uint64{}
		list := listed(t, look, kind)
		for _, o := range list {
			if _, twice := owner[kind][o.Handle]; twice || o.Handle == 0 {
				t.Errorf("kind %d: number %d is there twice", kind, o.Handle)
			}
			owner[kind][o.Handle] = o.Client
		}
		if len(list) < 3 {
			t.Errorf("kind %d: %+v", kind, list)
		}
	}
	for _, q := range listed(t, look, proto.QPs) {
		if owner[proto.PDs][q.PD] != q.Client || owner[proto.CQs][q.SendCQ] != q.Client || owner[proto.CQs][q.RecvCQ] != q.Client || q.SRQ != 0 {
			t.Errorf("%+v", q)
		}
	}
}

// Clients are listed with their objects.
func TestListClients(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	one := newProgram(t, r.a.dial(t))
	page, err := r.a.looker(0).ListClients(proto.ListClientsRequest{})
	check(t, err)
	if len(page.Clients) != 1 || page.More {
		t.Fatalf("%+v", page)
	}
	i := page.Clients[0]
	if i.PID != uint32(os.Getpid()) || i.Device != "a" || i.QPs != 1 || i.PDs != 1 || i.MemorySize == 0 || i.Since == 0 || i.Command == "" {
		t.Errorf("%+v", i)
	}
	check(t, one.ctx.Close())
	eventually(t, "a client that has gone is listed", func() bool {
		page, err := r.a.looker(0).ListClients(proto.ListClientsRequest{})
		return err == nil && len(page.Clients) == 0
	})
}

// Others' clients and objects are root's and the daemon's user's to see.
func TestOthersAreNotSeen(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	newProgram(t, r.a.dial(t))
	for uid, want := range map[uint32]int{0: 1, uint32(os.Geteuid()): 1, 12345: 0} {
		look := r.a.looker(uid)
		page, err := look.ListClients(proto.ListClientsRequest{})
		check(t, err)
		if len(page.Clients) != want || len(listed(t, look, proto.QPs)) != want {
			t.Errorf("user %d sees %d clients and %d QPs, want %d", uid, len(page.Clients), len(listed(t, look, proto.QPs)), want)
		}
	}
}

// manyHosts is a source that makes a host for each session, and has no counters of its own.
type manyHosts struct{ hosts []*hca.Card }

func (m *manyHosts) Name() string { return "many" }

func (m *manyHosts) NewSession(c hca.SessionConfig) (*hca.Session, error) {
	host := m.hosts[0]
	m.hosts = m.hosts[1:]
	return host.NewSession(c)
}

// Counters are a device's, or the sums of those of its clients' hosts.
func TestReadCounters(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	check(t, r.a.SetDevices(r.cards[0], &manyHosts{r.cards[:]}))
	look := r.a.looker(0)
	count := func(device, name string) (value uint64) {
		all, err := look.ReadCounters(proto.ReadCountersRequest{Device: device})
		check(t, err)
		for _, c := range all {
			if c.Name == name {
				value += c.Value
			}
		}
		return value
	}
	if n := count("many", "sent"); n != 0 {
		t.Errorf("without clients: %d sent", n)
	}
	b := newProgram(t, r.b.dial(t))
	c, err := client.Dial(r.a.path, "many")
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	a := newProgram(t, c)
	a.exchange(a.ah(addressesB[0]), b, "counted")
	if many, one := count("many", "sent"), count("a", "sent"); many != 1 || one != 1 {
		t.Errorf("%d and %d sent, want 1", many, one)
	}
	if _, err := look.ReadCounters(proto.ReadCountersRequest{Device: "none"}); !errors.Is(err, verbs.ErrInvalid) {
		t.Error(err)
	}
}

// LookDevice is answered without a session, also to who may have none; of a device without a card with
// the reason.
func TestLookDevice(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	check(t, r.a.SetDevices(r.cards[0], absent{}, &manyHosts{}))
	r.a.SetLimits(peer.Limits{Connections: 1, Limits: hca.Limits{QPs: 3}})
	look := r.a.looker(12345)
	v, err := look.QueryDevice(proto.LookDeviceRequest{Device: "a"})
	check(t, err)
	if !v.Open || v.More || v.Why != "" || v.Attr.Name != "a" || v.Attr.MaxQP != 3 || v.Attr.MaxMR < 1000 || v.Port.State != verbs.PortActive ||
		len(v.GIDs) != len(addressesA) || v.GIDs[0].GID != verbs.GIDFromAddr(addressesA[0]) {
		t.Errorf("%+v", v)
	}
	if v, err = look.QueryDevice(proto.LookDeviceRequest{Device: "a", From: 1 << 31}); err != nil || len(v.GIDs) != 0 || v.More {
		t.Errorf("from a place that is none: %+v, %v", v, err)
	}
	if v, err = look.QueryDevice(proto.LookDeviceRequest{Device: "absent"}); err != nil || v.Open || v.Why != "it is not plugged in" {
		t.Errorf("a device without a card: %+v, %v", v, err)
	}
	for device, want := range map[string]error{"none": verbs.ErrInvalid, "many": verbs.ErrUnsupported} {
		if _, err := look.QueryDevice(proto.LookDeviceRequest{Device: device}); !errors.Is(err, want) {
			t.Errorf("%s: %v", device, err)
		}
	}
	if clients := r.a.Clients(); clients != 0 {
		t.Errorf("looking has made %d sessions", clients)
	}
	check(t, r.cards[0].Close())
	if v, err = look.QueryDevice(proto.LookDeviceRequest{Device: "a"}); err != nil || v.Open || v.Why == "" {
		t.Errorf("a card that is closed: %+v, %v", v, err)
	}
}

// absent is a source without a card.
type absent struct{}

func (absent) Name() string { return "absent" }

func (absent) NewSession(hca.SessionConfig) (*hca.Session, error) { return nil, verbs.ErrDeviceFatal }

func (absent) Do(context.Context, provider.Code, any, any) error {
	return &admin.NoCardError{Device: "absent", Cause: errors.New("it is not plugged in")}
}

// GIDs of many hosts come in pages.
func TestManyGIDs(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	many := crowd{r.cards[0], 2*proto.PageEntries + 1}
	check(t, r.a.SetDevices(many))
	seen := 0
	for more := true; more; {
		v, err := r.a.looker(0).QueryDevice(proto.LookDeviceRequest{From: uint32(seen)})
		check(t, err)
		if _, err := proto.LookDevice.EncodeGrant(1, &v, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.GIDs {
			if e.Index != seen {
				t.Fatalf("got index %d, want %d", e.Index, seen)
			}
			seen++
		}
		more = v.More
	}
	if seen != many.lines {
		t.Errorf("%d lines, want %d", seen, many.lines)
	}
}

// crowd is a device with many GIDs.
type crowd struct {
	*hca.Card
	lines int
}

func (c crowd) Do(ctx context.Context, code provider.Code, request, grant any) error {
	table, is := grant.(*provider.QueryGIDTableGrant)
	if !is {
		return c.Card.Do(ctx, code, request, grant)
	}
	for i := range c.lines {
		table.Entries = append(table.Entries, verbs.GIDEntry{Index: i})
	}
	return nil
}

// Ids are as their programs made them; more than fit a page are listed once each.
func TestListIDs(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t)
	one, two := r.a.dial(t), r.a.dial(t)
	const ids = 2*proto.PageIDs + 7
	bound := netip.AddrPortFrom(addressesA[0], 7174)
	for n, session := range []*client.Client{one, two} {
		channel, err := provider.Do(session, provider.CreateEventChannel, provider.None{})
		check(t, err)
		t.Cleanup(func() { check(t, channel.Events.Close()) })
		for i := range ids {
			grant, err := provider.Do(session, provider.CreateID, provider.CreateIDRequest{Channel: channel.Channel, PortSpace: wire.PortSpaceUDP})
			check(t, err)
			if n == 1 && i == ids-1 {
				_, err := provider.Do(session, provider.BindID, provider.BindIDRequest{ID: grant.ID, Address: bound})
				check(t, err)
			}
		}
	}
	seen, last := map[string]bool{}, proto.ClientID{}
	for request, more := (proto.ListIDsRequest{}), true; more; {
		page, err := r.a.looker(0).ListIDs(request)
		check(t, err)
		if _, err := proto.ListIDs.EncodeGrant(1, &page, nil); err != nil {
			t.Fatal(err)
		}
		for _, id := range page.IDs {
			seen[fmt.Sprint(id.Client, id.Handle)], last = true, id
		}
		request.From, more = page.Next, page.More
	}
	if len(seen) != 2*ids || last.State != "ADDR_BOUND" || last.Local != bound || last.PID != uint32(os.Getpid()) {
		t.Errorf("%d ids; the last is %+v", len(seen), last)
	}
	if page, err := r.a.looker(1 << 30).ListIDs(proto.ListIDsRequest{}); err != nil || len(page.IDs) != 0 {
		t.Errorf("another user sees %d ids: %v", len(page.IDs), err)
	}
}
