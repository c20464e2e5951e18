// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// watchedPort is a port of a switch, with the number of messages to each group that have passed it.
type watchedPort struct {
	*sniffer
	name string
	seen map[verbs.GID]int
}

func (s *switched) watch(t *testing.T, name string) *watchedPort {
	t.Helper()
	return &watchedPort{newSnifferOn(t, s.Bridge.Namespace, name), name, map[verbs.GID]int{}}
}

// settle waits until all earlier messages have passed the ports: they are followed by a message that every switch
// floods, to all hosts.
func (s *switched) settle(t *testing.T, ports ...*watchedPort) {
	t.Helper()
	const allHosts = "224.0.0.1"
	marks := ports[0].seen[gid(allHosts)] + 1
	s.a.post(s.a.toGroup(allHosts, 9, 1))
	check(t, s.a.wait(1)[0].Err())
	for _, p := range ports {
		eventually(t, "the message to all hosts", func() bool {
			for f, err := range p.Frames() {
				check(t, err)
				var packet wire.Packet
				if wire.Parse(f.Data, &packet) == wire.FaultNone {
					p.seen[packet.Destination()]++
				}
			}
			return p.seen[gid(allHosts)] == marks
		})
	}
}

// awaitFiltering waits until the switch no longer forwards unrequested groups to ports: a new switch floods until its
// first query could have been answered.
func (s *switched) awaitFiltering(t *testing.T, nobodys string, ports ...*watchedPort) {
	t.Helper()
	eventually(t, "a switch that filters", func() bool {
		before := ports[0].seen[gid(nobodys)]
		s.a.post(s.a.toGroup(nobodys, 9, 1))
		check(t, s.a.wait(1)[0].Err())
		s.settle(t, ports...)
		return ports[0].seen[gid(nobodys)] == before
	})
}

// Messages to a group, from a member of any kind, reach the full members and nothing else: neither a send-only member,
// nor the wire of a host that is not a member.
func TestEveryCombinationOfMembers(t *testing.T) {
	t.Parallel()
	kinds := map[verbs.JoinFlags]string{verbs.JoinFullMember: "full", verbs.JoinSendOnlyFullMember: "send-only"}
	for _, group := range []string{groupV4, groupV6} {
		for from, sender := range kinds {
			for to, receiver := range kinds {
				t.Run(fmt.Sprintf("%s to %s, %s", sender, receiver, group), func(t *testing.T) {
					combination(t, group, from, to)
				})
			}
		}
	}
}

// combination has a host of each kind, and beside them a full member and a host that is not a member.
func combination(t *testing.T, group string, from, to verbs.JoinFlags) {
	hosts := newSwitched(t)
	full, none := labtest.New(t, "hca-full"), labtest.New(t, "hca-none")
	nonesPort, err := hosts.Bridge.Port(none, "eth0")
	check(t, err)
	fullPort, err := hosts.Bridge.Port(full, "eth0")
	check(t, err)
	check(t, full.AddAddress("eth0", "10.77.0.3/24"))
	check(t, full.AddAddress("eth0", "fd77::3/64"))
	c := newStation(t, open(t, full, WithStateDir(t.TempDir())))

	expectIn := map[*station]int{hosts.a: 0, hosts.b: 0, c: 1}
	for s, flags := range map[*station]verbs.JoinFlags{hosts.a: from, hosts.b: to, c: verbs.JoinFullMember} {
		m := join(t, s, group, flags)
		if flags == verbs.JoinFullMember {
			check(t, s.qp.AttachMcast(m.MGID(), m.MLID()))
			expectIn[s] = 1
		}
		s.receive(0, 1, 2)
	}
	eventually(t, "reports", func() bool {
		return hosts.snooped(t, fullPort, group) && hosts.snooped(t, hosts.PortA, group) == (from == verbs.JoinFullMember) &&
			hosts.snooped(t, hosts.PortB, group) == (to == verbs.JoinFullMember)
	})
	receivers, fulls, nones := hosts.watch(t, hosts.PortB), hosts.watch(t, fullPort), hosts.watch(t, nonesPort)
	hosts.awaitFiltering(t, alias[group], receivers, fulls, nones)
	for id := range 3 {
		wr := hosts.a.toGroup(group, 9, 12)
		wr.ID = uint64(90 + id)
		hosts.a.post(wr)
	}
	expectOf := func(s *station, sends int) {
		t.Helper()
		got := map[uint64]int{}
		for _, wc := range s.wait(sends + 3*expectIn[s]) {
			check(t, wc.Err())
			got[wc.ID]++
		}
		for id := range 3 {
			if got[uint64(id)] != expectIn[s] {
				t.Errorf("receives completed: got %v, want each %d times", got, expectIn[s])
			}
		}
	}
	expectOf(c, 0)
	expectOf(hosts.a, 3)
	expectOf(hosts.b, 0)
	hosts.settle(t, receivers, fulls, nones)
	for p, want := range map[*watchedPort]int{fulls: 3, nones: 0, receivers: 3 * expectIn[hosts.b]} {
		if n := p.seen[gid(group)]; n != want {
			t.Errorf("%d packets on %s, want %d", n, p.name, want)
		}
	}
	for _, s := range []*station{hosts.a, hosts.b, c} {
		if drops := s.drops(); len(drops) != 0 {
			t.Errorf("drops %v", drops)
		}
	}
}

// A send-only member continues when the full member beside it leaves, which the switch is notified of.
func TestFullMemberLeavesASendOnlyOne(t *testing.T) {
	t.Parallel()
	for _, group := range []string{groupV4, groupV6} {
		t.Run(group, func(t *testing.T) {
			hosts := newSwitched(t)
			receiver := join(t, hosts.b, group, verbs.JoinFullMember)
			check(t, hosts.b.qp.AttachMcast(receiver.MGID(), 0))
			join(t, hosts.a, group, verbs.JoinSendOnlyFullMember)
			full := join(t, hosts.a, group, verbs.JoinFullMember)
			eventually(t, "reports", func() bool {
				return hosts.snooped(t, hosts.PortA, group) && hosts.snooped(t, hosts.PortB, group)
			})
			hosts.talk(t, group)
			check(t, full.Close())
			eventually(t, "leave", func() bool { return !hosts.snooped(t, hosts.PortA, group) })
			hosts.talk(t, group)
			if !hosts.snooped(t, hosts.PortB, group) {
				t.Error("the receiver no longer receives")
			}
		})
	}
}

// alias maps a group to one whose packets have the same Ethernet address.
var alias = map[string]string{groupV4: "239.129.2.3", groupV6: "ff05::1:2:3"}

// A group that shares its Ethernet address with a joined and attached one is a different group: it passes to the host,
// whose own socket receives it.
func TestAliasedGroupPasses(t *testing.T) {
	t.Parallel()
	for group, other := range alias {
		t.Run(group, func(t *testing.T) {
			if wire.MulticastMAC(gid(group)) != wire.MulticastMAC(gid(other)) {
				t.Fatal("the groups have different MACs")
			}
			l := newStations(t, WithStateDir(t.TempDir()))
			join(t, l.b, group, verbs.JoinFullMember)
			check(t, l.b.qp.AttachMcast(gid(group), 0))
			socket := newGroupSocket(t, l.B, other, 4791)
			l.b.receive(0, 1)
			before := counts(t, l.b.device)
			for _, to := range []string{other, group} {
				l.a.post(l.a.toGroup(to, 9, 12))
				check(t, l.a.wait(1)[0].Err())
			}
			wc := l.b.wait(1)[0]
			check(t, wc.Err())
			if grh, _ := wc.Payload(l.b.slot(0)); grh.DGID() != gid(group) {
				t.Errorf("a message to %v was delivered", grh.DGID())
			}
			if _, err := unix.Read(socket, make([]byte, 2048)); err != nil {
				t.Errorf("host socket: %v", err)
			}
			check(t, unix.Close(socket))
			after := counts(t, l.b.device)
			if after["pass_group"] != before["pass_group"]+1 || after["delivered"] != before["delivered"]+1 {
				t.Errorf("before %v, after %v", before, after)
			}
		})
	}
}

// A thousand groups, joined and attached, with the kernel's default limits: messages to each arrive. If the kernel's
// limit is reached, the error names it, and the others work.
func TestThousandGroupsOnADevice(t *testing.T) {
	t.Parallel()
	const n = 1000
	nth := func(i int) string { return fmt.Sprintf("239.5.%d.%d", i>>8, i&255) }
	nth6 := func(i int) string { return fmt.Sprintf("ff05::5:%x", i) }
	for name, nth := range map[string]func(int) string{"IPv4": nth, "IPv6": nth6} {
		t.Run("as shipped, "+name, func(t *testing.T) {
			l := newStations(t, WithStateDir(t.TempDir()))
			for i := range n {
				m := join(t, l.b, nth(i), verbs.JoinFullMember)
				check(t, l.b.qp.AttachMcast(m.MGID(), m.MLID()))
			}
			for i := range n {
				arrives(t, l, nth(i))
			}
		})
	}
	t.Run("beyond the limit", func(t *testing.T) {
		l := newStations(t, WithStateDir(t.TempDir()), WithMembership(MembershipNetlink))
		joined := 0
		for ; joined < n; joined++ {
			_, err := l.b.ctx.JoinMulticast(address(nth(joined)), verbs.JoinFullMember)
			if err != nil {
				refused(t, err, unix.ENOBUFS, nth(joined), "net.ipv4.igmp_max_memberships")
				break
			}
			check(t, l.b.qp.AttachMcast(gid(nth(joined)), 0))
		}
		if joined != 20 {
			t.Errorf("joined %d groups", joined)
		}
		for i := range joined {
			arrives(t, l, nth(i))
		}
	})
}

// arrives sends one message from a to a group, which b is in.
func arrives(t *testing.T, l *stations, group string) {
	t.Helper()
	l.b.receive(0)
	ah := l.a.ah(group)
	l.a.post(verbs.SendWR{Opcode: verbs.WRSend, ID: 9, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: verbs.MulticastQPN, RemoteQKey: testQKey})
	expect(t, l.a.wait(1), ok(9))
	expect(t, l.b.wait(1), ok(0))
	if grh, _ := (&verbs.WC{Flags: verbs.WCGRH, ByteLen: 40}).Payload(l.b.slot(0)); grh.DGID() != gid(group) {
		t.Errorf("got a message to %v, want %s", grh.DGID(), group)
	}
	check(t, ah.Close())
}
