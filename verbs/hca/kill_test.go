// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// sendOrder names the group for a child to join, and the method.
type sendOrder struct {
	Interface string // eth0 unless set
	Group     netip.Addr
	Flags     verbs.JoinFlags
	Via       MembershipMethod
	StateDir  string
}

const orderVariable = "ROCED_HCA_ORDER"

// sendForever joins a group and sends to it until it is killed or its parent dies. It sends a message per millisecond,
// so that the observers can read all.
func sendForever() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var o sendOrder
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return err
	}
	d, err := Open(cmp.Or(o.Interface, "eth0"), WithMembership(o.Via), WithStateDir(o.StateDir))
	if err != nil {
		return err
	}
	ctx, err := verbs.Open(d)
	if err != nil {
		return err
	}
	membership, err := ctx.JoinMulticast(o.Group, o.Flags)
	if err != nil {
		return err
	}
	to, err := membership.AHAttr()
	if err != nil {
		return err
	}
	return sendAll(ctx, to)
}

func sendAll(ctx *verbs.Context, to verbs.AHAttr) error {
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	ah, err := pd.CreateAH(context.Background(), &to)
	if err != nil {
		return err
	}
	cq, err := ctx.CreateCQ(depth)
	if err != nil {
		return err
	}
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
	if err == nil {
		err = qp.Activate(testQKey)
	}
	wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: verbs.MulticastQPN, RemoteQKey: testQKey}
	for err == nil {
		if err = qp.PostSend([]verbs.SendWR{wr}); err == nil {
			var wcs [1]verbs.WC
			_, err = cq.Wait(context.Background(), wcs[:])
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// nothingStale checks that the host of a killed member is no longer a member: neither by its addresses nor in the
// switch.
func nothingStale(t *testing.T, s *switched, group string) {
	t.Helper()
	list, err := s.A.Netlink().AddrList(eth0(t, s.A), netlink.FAMILY_ALL)
	check(t, err)
	for _, a := range list {
		if a.IP.Equal(address(group).AsSlice()) {
			t.Errorf("the address %v is left", a.IPNet)
		}
	}
	eventually(t, "the switch without the killed member", func() bool { return !s.snooped(t, s.PortA, group) })
}

// startSender starts a child that sends, in a host's namespace; kill kills it (SIGKILL).
func startSender(t *testing.T, host *lab.Namespace, o sendOrder) (kill func()) {
	t.Helper()
	text, err := json.Marshal(o)
	check(t, err)
	sender := child("send")
	sender.SysProcAttr = nil // as root, which may write to the state directory
	sender.Env = append(sender.Env, orderVariable+"="+string(text))
	stdin, err := sender.StdinPipe()
	check(t, err)
	out, err := sender.StdoutPipe()
	check(t, err)
	check(t, host.Do(sender.Start))
	go func() { // it prints only errors
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Errorf("the sender printed %q", lines.Text())
		}
	}()
	killed := false
	kill = func() {
		if !killed {
			killed = true
			check(t, sender.Process.Kill())
			_ = sender.Wait() // that it was killed
			_ = stdin.Close()
		}
	}
	t.Cleanup(kill)
	return kill
}

// conversation is the traffic of a host and one group at a switch's port.
type conversation struct {
	*sniffer
	group, other netip.Addr
	about        int // IGMP or MLD messages of the host about the group
	ofOther      int // about another group
	asked        int // queries of the group's IP version
	messages     int // messages of the host to the group: traffic, not signalling
}

// listen reads the packets up to now.
func (c *conversation) listen() {
	for frame, err := range c.Frames() {
		check(c, err)
		var p wire.Packet
		if !frame.Outgoing && wire.Parse(frame.Data, &p) == wire.FaultNone && p.Destination().Addr() == c.group {
			c.messages++
		}
		for _, m := range capture.MembershipMessages(frame.Data) {
			switch {
			case m.Kind == capture.Query && m.Group.Is4() == c.group.Is4():
				c.asked++
			case !frame.Outgoing && m.Group == c.group:
				c.about++
			case !frame.Outgoing && m.Group == c.other:
				c.ofOther++
			}
		}
	}
}

// until listens until a condition holds.
func (c *conversation) until(t *testing.T, what string, heard func() bool) {
	t.Helper()
	eventually(t, what, func() bool { c.listen(); return heard() })
}

// A send-only member that is killed in the middle of its traffic causes no IGMP or MLD messages, nor does the next
// process that opens the card for it; and full members elsewhere continue to receive. The same test with full members
// shows that such messages would be seen.
func TestKilledSenderIsSilent(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, group, other string
		via                MembershipMethod
	}{
		{"IPv4 by netlink", groupV4, "239.9.9.9", MembershipNetlink},
		{"IPv4 by socket", groupV4, "239.9.9.9", MembershipSocket},
		{"IPv6 by socket", groupV6, "ff0e::9:9", MembershipSocket},
	}
	for _, row := range rows {
		for flags, member := range map[verbs.JoinFlags]string{verbs.JoinSendOnlyFullMember: "send-only", verbs.JoinFullMember: "full"} {
			t.Run(member+" "+row.name, func(t *testing.T) {
				t.Parallel() // most of it waits for the bridge's queries
				hosts, state := labtest.Switched(t), t.TempDir()
				s := &switched{SwitchLab: hosts, b: newStation(t, open(t, hosts.B, WithStateDir(t.TempDir())))}
				beside := join(t, s.b, row.group, verbs.JoinFullMember)
				check(t, s.b.qp.AttachMcast(beside.MGID(), 0))
				eventually(t, "report of the receiver", func() bool { return s.snooped(t, hosts.PortB, row.group) })
				heard := &conversation{sniffer: newSnifferOn(t, hosts.Bridge.Namespace, hosts.PortA), group: address(row.group), other: address(row.other)}
				kill := startSender(t, hosts.A, sendOrder{Group: heard.group, Flags: flags, Via: row.via, StateDir: state})
				heard.until(t, "messages", func() bool { return heard.messages > 0 })
				asked := heard.asked
				heard.until(t, "two queries while it sends", func() bool { return heard.asked >= asked+2 })
				kill()
				heard.listen()

				s.a = newStation(t, open(t, hosts.A, WithStateDir(state), WithMembership(row.via)))
				next := join(t, s.a, row.group, verbs.JoinSendOnlyFullMember)
				asked = heard.asked
				heard.until(t, "two queries after it", func() bool { return heard.asked >= asked+2 })
				s.talk(t, row.group)
				check(t, next.Close())
				// This message comes after all earlier ones.
				join(t, s.a, row.other, verbs.JoinFullMember)
				heard.until(t, "report of another group", func() bool { return heard.ofOther > 0 })
				if (heard.about > 0) != (member == "full") {
					t.Errorf("the host sent %d messages about the group", heard.about)
				}
				if !s.snooped(t, hosts.PortB, row.group) {
					t.Error("the receiver no longer receives")
				}
				nothingStale(t, s, row.group)
			})
		}
	}
}
