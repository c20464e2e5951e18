// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// switched is two cards on a switch with snooping.
type switched struct {
	*labtest.SwitchLab
	a, b *station
}

func newSwitched(t *testing.T, options ...Option) *switched {
	t.Helper()
	hosts := labtest.Switched(t)
	options = append(options, WithStateDir(t.TempDir()))
	return &switched{hosts, newStation(t, open(t, hosts.A, options...)), newStation(t, open(t, hosts.B, options...))}
}

// snooped reports whether the switch lists a port as a member's.
func (s *switched) snooped(t *testing.T, port, group string) bool {
	t.Helper()
	entries, err := s.Bridge.MDB()
	check(t, err)
	for _, e := range entries {
		if e.Port == port && e.Group == address(group) {
			return true
		}
	}
	return false
}

func join(t *testing.T, s *station, group string, flags verbs.JoinFlags) *verbs.Membership {
	t.Helper()
	m, err := s.ctx.JoinMulticast(address(group), flags)
	check(t, err)
	return m
}

// talk sends one message from a to b over a group, and checks that it arrives.
func (s *switched) talk(t *testing.T, group string) {
	t.Helper()
	s.b.receive(0)
	copy(s.a.slot(9), "to the group")
	s.a.post(s.a.toGroup(group, 9, 12))
	check(t, s.a.wait(1)[0].Err())
	wc := s.b.wait(1)[0]
	check(t, wc.Err())
	if _, payload := wc.Payload(s.b.slot(0)); string(payload) != "to the group" {
		t.Errorf("got %q", payload)
	}
}

// The switch lists full members until the last of them leaves; it does not list send-only members, whose leave does not
// affect the full members beside them.
func TestMembersOnASwitch(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		group   string
		network Network
	}{{groupV4, NetworkXDP}, {groupV6, NetworkXDP}, {groupV4, NetworkUDP}, {groupV6, NetworkUDP}} {
		t.Run(row.group+" over "+string(row.network), func(t *testing.T) {
			hosts, group := newSwitched(t, WithNetwork(row.network)), row.group
			first, second := join(t, hosts.b, group, verbs.JoinFullMember), join(t, hosts.b, group, verbs.JoinFullMember)
			beside := join(t, hosts.b, group, verbs.JoinSendOnlyFullMember)
			sender := join(t, hosts.a, group, verbs.JoinSendOnlyFullMember)
			check(t, hosts.b.qp.AttachMcast(first.MGID(), first.MLID()))
			eventually(t, "report", func() bool { return hosts.snooped(t, hosts.PortB, group) })
			hosts.talk(t, group)
			check(t, beside.Close())
			check(t, first.Close())
			hosts.talk(t, group)
			if !hosts.snooped(t, hosts.PortB, group) || hosts.snooped(t, hosts.PortA, group) {
				t.Error("the switch must list the receiver's port and not the sender's")
			}
			check(t, sender.Close())
			check(t, second.Close())
			eventually(t, "leave", func() bool { return !hosts.snooped(t, hosts.PortB, group) })
		})
	}
}

// A send-only member causes no IGMP or MLD messages: not when it joins, sends or leaves, nor when its device closes.
func TestSendOnlyIsSilent(t *testing.T) {
	t.Parallel()
	for _, group := range []string{groupV4, groupV6} {
		t.Run(group, func(t *testing.T) {
			hosts := newSwitched(t)
			sniff := newSniffer(t, hosts.A)
			receiver := join(t, hosts.b, group, verbs.JoinFullMember)
			check(t, hosts.b.qp.AttachMcast(receiver.MGID(), 0))
			eventually(t, "report", func() bool { return hosts.snooped(t, hosts.PortB, group) })
			left := join(t, hosts.a, group, verbs.JoinSendOnlyFullMember)
			join(t, hosts.a, group, verbs.JoinSendOnlyFullMember) // joined until the card closes
			for _, state := range []ib.JoinState{ib.JoinStateSendOnlyNonMember, ib.JoinStateSendOnlyNonMember | ib.JoinStateSendOnlyFullMember} {
				_, err := provider.Do(hosts.a.device, provider.JoinMulticast, provider.JoinMulticastRequest{Group: address(group), State: state})
				check(t, err)
			}
			// Full members of other groups cause messages: so the sniffer works, and all earlier messages have arrived.
			silent := 0
			await := func(other string) {
				eventually(t, "report of another group", func() bool {
					said := sniff.said()
					silent += said[address(group)]
					return said[address(other)] > 0
				})
			}
			others := map[bool][2]string{true: {"239.9.9.9", "239.9.9.8"}, false: {"ff0e::9:9", "ff0e::9:8"}}[address(group).Is4()]
			join(t, hosts.a, others[0], verbs.JoinFullMember)
			await(others[0])
			hosts.talk(t, group)
			check(t, left.Close())
			hosts.talk(t, group)
			check(t, hosts.a.device.Close())
			again := newStation(t, open(t, hosts.A, WithStateDir(t.TempDir())))
			join(t, again, others[1], verbs.JoinFullMember)
			await(others[1])
			if silent != 0 {
				t.Errorf("the send-only host sent %d messages about the group, want 0", silent)
			}
		})
	}
}

func TestJoinWithoutAnAddress(t *testing.T) {
	d, other, err := OpenPair([]netip.Addr{address("10.0.0.1")}, nil)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()); check(t, other.Close()) })
	ctx, err := verbs.Open(d)
	check(t, err)
	_, err = ctx.JoinMulticast(address(groupV6), verbs.JoinSendOnlyFullMember)
	refused(t, err, unix.ENODATA, "no address")
	m, err := ctx.JoinMulticast(address(groupV6), verbs.JoinFullMember)
	check(t, err)
	_, err = m.AHAttr()
	refused(t, err, unix.ENODATA, "no address")
}

// A capture port has no address, but can still receive from groups.
func TestReceiveOnAnInterfaceWithoutAddresses(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for _, cidr := range []string{"10.77.0.2/24", "fd77::2/64"} {
		delAddress(t, hosts.B, cidr)
	}
	l := newStationsOn(t, hosts)
	for _, group := range []string{groupV4, groupV6, "ff02::77%eth0"} {
		t.Run(group, func(t *testing.T) {
			to := address(group)
			m, err := l.b.ctx.JoinMulticast(to, verbs.JoinFullMember)
			check(t, err)
			check(t, l.b.qp.AttachMcast(m.MGID(), m.MLID()))
			sender, err := l.a.ctx.JoinMulticast(to, verbs.JoinSendOnlyFullMember)
			check(t, err)
			attr, err := sender.AHAttr()
			check(t, err)
			ah, err := l.a.pd.CreateAH(t.Context(), &attr)
			check(t, err)
			l.b.receive(0)
			wr := l.a.send(1, ah, l.b)
			wr.RemoteQPN = verbs.MulticastQPN
			l.a.post(wr)
			expect(t, l.a.wait(1), ok(1))
			expect(t, l.b.wait(1), ok(0))
		})
	}
}
