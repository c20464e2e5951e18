// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hasAddress reports whether a host's eth0 has an address.
func hasAddress(t *testing.T, host *lab.Namespace, ip string) bool {
	t.Helper()
	list, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_ALL)
	check(t, err)
	return slices.ContainsFunc(list, func(a netlink.Addr) bool { return a.IP.Equal(address(ip).AsSlice()) })
}

// killedMember leaves the address of a group on a host's eth0, like an XDP device that is killed.
func killedMember(t *testing.T, host *lab.Namespace, stateDir string) {
	t.Helper()
	kill := startSender(t, host, sendOrder{Group: address(groupV4), Flags: verbs.JoinFullMember, Via: MembershipNetlink, StateDir: stateDir})
	eventually(t, "the group's address", func() bool { return hasAddress(t, host, groupV4) })
	kill()
	if !hasAddress(t, host, groupV4) {
		t.Fatal("the group's address was removed with its process")
	}
}

// TestUDPUndoesLeftovers: a device over UDP sockets undoes all changes that a killed XDP device left, and joins the
// same group.
func TestUDPUndoesLeftovers(t *testing.T) {
	t.Parallel()
	hosts, dir := labtest.Pair(t), t.TempDir()
	killedMember(t, hosts.A, dir)
	l := &stations{hosts, newStation(t, open(t, hosts.B, WithNetwork(NetworkUDP))), newStation(t, open(t, hosts.A, WithNetwork(NetworkUDP), WithStateDir(dir)))}
	if hasAddress(t, hosts.A, groupV4) {
		t.Error("the group's address was not removed")
	}
	for _, kind := range []string{"memberships", "neighbours", "knobs"} {
		if got := journaled(t, dir, kind); got != "" {
			t.Errorf("%s in the journal: %q", kind, got)
		}
	}
	m := join(t, l.b, groupV4, verbs.JoinFullMember)
	check(t, l.b.qp.AttachMcast(m.MGID(), m.MLID()))
	arrives(t, l, groupV4)
}

// TestUDPWithoutPrivilegeBesideLeftovers: a device without privileges reports the changes that a killed XDP device left
// and their removal, and still joins the same group.
func TestUDPWithoutPrivilegeBesideLeftovers(t *testing.T) {
	t.Parallel()
	hosts, dir := labtest.Pair(t), t.TempDir()
	killedMember(t, hosts.A, dir)
	b := newStation(t, open(t, hosts.B, WithNetwork(NetworkUDP)))
	said := startMember(t, hosts.A, sendOrder{Group: address(groupV4), StateDir: dir})
	for line := range said {
		switch {
		case line == "joined":
			b.post(b.toGroup(groupV4, 0, 12))
			check(t, b.wait(1)[0].Err())
		case line == "received":
			said = nil
		case strings.Contains(line, "ip address del"):
			if want := "ip address del " + groupV4 + "/32 dev eth0"; !strings.Contains(line, want) {
				t.Errorf("%q does not contain %q", line, want)
			}
			dir = ""
		default:
			t.Errorf("the member printed %q", line)
		}
		if said == nil {
			break
		}
	}
	if said != nil || dir != "" {
		t.Error("nothing was received, or the group's address was not reported")
	}
	open(t, hosts.A, WithStateDir(t.TempDir())) // no process uses the interface any more
}

// TestGroupOfAnotherProgram: another program's socket on the RoCEv2 port of a group does not prevent a device on an
// interface that still has the group's address.
func TestGroupOfAnotherProgram(t *testing.T) {
	t.Parallel()
	host, dir := labtest.Pair(t).A, t.TempDir()
	killedMember(t, host, dir)
	other := socketOn(t, host, address(groupV4).As4())
	t.Cleanup(func() { check(t, unix.Close(other)) })
	open(t, host, WithNetwork(NetworkXDP), WithStateDir(t.TempDir()))
}

// startMember starts a child without privileges that runs memberOnce, and returns the lines that it prints.
func startMember(t *testing.T, host *lab.Namespace, o sendOrder) <-chan string {
	t.Helper()
	text, err := json.Marshal(o)
	check(t, err)
	member := child("member")
	member.Env = append(member.Env, orderVariable+"="+string(text))
	out, err := member.StdoutPipe()
	check(t, err)
	member.Stderr = member.Stdout
	check(t, host.Do(member.Start))
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { _ = member.Process.Kill(); _ = member.Wait() })
	return lines
}

// memberOnce joins a group over UDP sockets and receives one message.
func memberOnce() error {
	var o sendOrder
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return err
	}
	card, err := Open("eth0", WithNetwork(NetworkUDP), WithStateDir(o.StateDir))
	if err != nil {
		return err
	}
	defer card.Close()
	ctx, err := verbs.Open(card)
	if err != nil {
		return err
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		return err
	}
	cq, err := ctx.CreateCQ(depth)
	if err != nil {
		return err
	}
	mr, err := pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
	if err != nil {
		return err
	}
	if err := qp.Activate(testQKey); err != nil {
		return err
	}
	if err := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, slotLen)}}}); err != nil {
		return err
	}
	m, err := ctx.JoinMulticast(o.Group, verbs.JoinFullMember)
	if err != nil {
		return err
	}
	if err := qp.AttachMcast(m.MGID(), m.MLID()); err != nil {
		return err
	}
	fmt.Println("joined")
	var wcs [1]verbs.WC
	if _, err := cq.Wait(context.Background(), wcs[:]); err != nil {
		return err
	}
	fmt.Println("received")
	return wcs[0].Err()
}
