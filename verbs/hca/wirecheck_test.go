package hca

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// A host that cannot be is refused, with what to do, and leaves nothing: the wire goes on, and a name
// and addresses are free again when their host has gone.
func TestHostsThatAWireRefuses(t *testing.T) {
	w, hosts, _ := newWireOf(t, 2, 0)
	free := address("10.0.0.50")
	for _, row := range []struct {
		name      string
		addresses []netip.Addr
		want      error
		says      string
	}{
		{"", []netip.Addr{free}, verbs.ErrInvalid, "no name"},
		{"host1", []netip.Addr{free}, verbs.ErrBusy, "choose another"},
		{"new", []netip.Addr{free, {}}, verbs.ErrInvalid, "no address"},
		{"new", []netip.Addr{address("239.1.2.3")}, verbs.ErrInvalid, "a group's"},
		{"new", []netip.Addr{address("ff02::1")}, verbs.ErrInvalid, "a group's"},
		{"new", []netip.Addr{address("0.0.0.0")}, verbs.ErrInvalid, "unspecified"},
		{"new", []netip.Addr{address("::")}, verbs.ErrInvalid, "unspecified"},
		{"new", []netip.Addr{address("127.0.0.2")}, verbs.ErrInvalid, "loopback"},
		{"new", []netip.Addr{address("::1")}, verbs.ErrInvalid, "loopback"},
		{"new", []netip.Addr{address("255.255.255.255")}, verbs.ErrInvalid, "broadcast"},
		{"new", []netip.Addr{address("::ffff:10.0.0.1")}, verbs.ErrInvalid, "Unmap"},
		{"new", []netip.Addr{address("fe80::1%eth0")}, verbs.ErrInvalid, "WithZone"},
		{"new", []netip.Addr{free, free}, verbs.ErrInvalid, "twice"},
		{"new", []netip.Addr{free, hostAddress(1)}, verbs.ErrBusy, "host2 has 10.0.0.2"},
	} {
		_, err := w.AddHost(row.name, row.addresses...)
		refused(t, err, row.want, row.says)
		if row.name == "new" {
			refused(t, hosts[0].SetAddresses(row.addresses...), row.want, row.says, "set addresses of host1")
		}
	}
	if got := hosts[0].host.now().addresses; len(got) != 1 || got[0] != hostAddress(0) {
		t.Errorf("addresses %v after all that was refused", got)
	}
	check(t, hosts[0].SetAddresses(hostAddress(0), free)) // its own address is not in its way
	check(t, hosts[1].Close())
	refused(t, hosts[1].SetAddresses(address("10.0.0.51")), verbs.ErrClosed, "left the wire")
	refused(t, hosts[1].SetMTU(1500), verbs.ErrClosed, "set MTU of ", "left the wire")
	_, err := w.AddHost("host2", hostAddress(1))
	check(t, err)
	check(t, w.Close())
	_, err = w.AddHost("late", address("10.0.0.52"))
	refused(t, err, verbs.ErrClosed, "NewWire")
}

func TestMTUsThatAWireRefuses(t *testing.T) {
	_, hosts, stations := newWireOf(t, 1, 0)
	before := stations[0].port()
	for _, bytes := range []int{-1, 0, 67} {
		refused(t, hosts[0].SetMTU(bytes), verbs.ErrInvalid, "68 or more")
	}
	if stations[0].port() != before {
		t.Errorf("%+v, was %+v", stations[0].port(), before)
	}
	check(t, hosts[0].SetMTU(68))
	if got := stations[0].port(); got.State != verbs.PortDown || got.InterfaceMTU != 68 {
		t.Errorf("%+v", got)
	}
}

func TestImpairmentsThatAWireRefuses(t *testing.T) {
	w, _, _ := newWireOf(t, 1, 0)
	for _, i := range []Impairment{
		{Loss: -0.1}, {Loss: 1.1}, {Loss: math.NaN()}, {Duplication: -1}, {Duplication: 2}, {Duplication: math.NaN()},
	} {
		refused(t, w.Impair(i), verbs.ErrInvalid, "0 to 1")
	}
	for _, i := range []Impairment{{Delay: -1}, {Jitter: -time.Second}} {
		refused(t, w.Impair(i), verbs.ErrInvalid, "0 or more")
	}
	check(t, w.Impair(Impairment{Loss: 1, Duplication: 1, Delay: 1, Jitter: 1}))
	check(t, w.Impair(Impairment{}))
}

// What is about an interface and its kernel is no option of a wire; what a card on any link has is.
func TestOptionsThatAWireRefuses(t *testing.T) {
	for name, option := range map[string]Option{
		"InNamespace": InNamespace("/proc/self/ns/net"), "WithXDPMode": WithXDPMode(XDPGeneric), "WithSocketMode": WithSocketMode(SocketCopy),
		"WithFrames": WithFrames(64), "WithTuning": WithTuning(Tuning{DeferHardIRQs: 1}),
		"WithMembership": WithMembership(MembershipSocket), "WithStateDir": WithStateDir("/tmp"),
	} {
		_, err := NewWire(0, option)
		refused(t, err, verbs.ErrInvalid, name, "leave it out")
	}
	w, err := NewWire(0, WithMTU(verbs.MTU1024), WithSpin(time.Millisecond), WithoutInline(), WithXDPMode(XDPAuto), WithSocketMode(SocketAuto), WithMembership(MembershipAuto))
	check(t, err)
	check(t, w.Close())
}

// A wire that is closed takes nothing any more.
func TestClosedWire(t *testing.T) {
	w, err := NewWire(0)
	check(t, err)
	h, err := w.AddHost("host1", hostAddress(0))
	check(t, err)
	check(t, w.Close())
	_, again := w.AddHost("host2", hostAddress(1))
	for _, err := range []error{again, w.Impair(Impairment{Loss: 1}), h.SetMTU(1500), h.SetAddresses()} {
		refused(t, err, verbs.ErrClosed)
	}
	h.SetUp(true) // without effect
}
