// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// childVariable makes the test binary join a group and wait until it is killed.
const childVariable = "ROCED_MCAST_CHILD"

// order is a command for a child.
type order struct {
	Namespace, StateDir string
	Via                 Method
	Group               netip.Addr
}

func child() {
	via, err := obey()
	fmt.Println(via, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func obey() (via Method, err error) {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &o); err != nil {
		return 0, err
	}
	m, err := Open(Config{Interface: "eth0", Namespace: o.Namespace, StateDir: o.StateDir, Via: o.Via})
	if err != nil {
		return 0, err
	}
	if err := m.Join(o.Group); err != nil {
		return 0, err
	}
	return m.List()[0].Via, nil
}

// startChild starts a process that joins, in a host's namespace, and returns its output; kill ends it with
// SIGKILL.
func startChild(t *testing.T, host *lab.Namespace, o order, identity *syscall.SysProcAttr) (output string, kill func()) {
	t.Helper()
	text, err := json.Marshal(o)
	check(t, err)
	process := exec.Command("/proc/self/exe")
	process.SysProcAttr = identity
	process.Env = append(os.Environ(), childVariable+"="+string(text))
	stdin, err := process.StdinPipe()
	check(t, err)
	stdout, err := process.StdoutPipe()
	check(t, err)
	check(t, host.Do(process.Start))
	killed := false
	kill = func() {
		if !killed {
			killed = true
			check(t, process.Process.Kill())
			_ = process.Wait() // the error states that it was killed
			_ = stdin.Close()
		}
	}
	t.Cleanup(kill)
	output, _ = bufio.NewReader(stdout).ReadString('\n')
	return output, kill
}

// TestKilled: leftovers of a killed process are removed by the next one, whatever its method.
func TestKilled(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts, dir := pair(t), t.TempDir()
			before := stateOf(t, hosts.A, way.group)
			output, kill := startChild(t, hosts.A, order{hosts.A.Path(), dir, way.via, way.group}, nil)
			if !isMember(t, hosts.A, way.group) {
				t.Fatalf("the child is not a member; output %q", output)
			}
			kill()
			left := 0
			if way.via == Netlink {
				left = 1
			}
			if n := len(groupAddresses(t, hosts.A, way.group)); n != left || len(records(t, dir)) != left {
				t.Errorf("%d addresses and %v left, want %d", n, records(t, dir), left)
			}
			openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), Via: Socket, StateDir: dir})
			eventually(t, "leave", func() bool { return !isMember(t, hosts.A, way.group) })
			stateOf(t, hosts.A, way.group).compare(t, before, "after")
			if list := groupAddresses(t, hosts.A, way.group); len(list) != 0 || len(records(t, dir)) != 0 {
				t.Errorf("left: %v, %v", list, records(t, dir))
			}
		})
	}
}

// TestLivingProcessIsLeftAlone: memberships of a running process are not changed.
func TestLivingProcessIsLeftAlone(t *testing.T) {
	hosts, group, dir := pair(t), ways[0].group, t.TempDir()
	startChild(t, hosts.A, order{hosts.A.Path(), dir, Netlink, group}, nil)
	w := watch(t, hosts.B)
	m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), StateDir: dir})
	check(t, m.Join(group))
	check(t, m.Leave(group))
	check(t, m.Close())
	if len(groupAddresses(t, hosts.A, group)) != 1 || len(records(t, dir)) != 1 || w.count(capture.Leave, group) != 0 {
		t.Error("a running process's membership was changed")
	}
}

// TestKilledAndReplaced: an address that another program has added after the kill is kept, and so is an address in
// another namespace.
func TestKilledAndReplaced(t *testing.T) {
	hosts, group, dir := pair(t), ways[0].group, t.TempDir()
	_, kill := startChild(t, hosts.A, order{hosts.A.Path(), dir, Netlink, group}, nil)
	kill()
	check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), &groupAddresses(t, hosts.A, group)[0]))
	administrator(t, hosts.A, "239.1.2.3/32", 0)

	// This address has the same label as ours.
	check(t, hosts.B.Netlink().AddrAdd(eth0(t, hosts.B), &netlink.Addr{IPNet: single(group), Label: label("eth0")}))
	openWith(t, Config{Interface: "eth0", Namespace: hosts.B.Path(), StateDir: dir})
	if len(groupAddresses(t, hosts.B, group)) != 1 || len(records(t, dir)) != 1 {
		t.Error("removed an address in another namespace, or the record of this one")
	}
	openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), StateDir: dir})
	if len(groupAddresses(t, hosts.A, group)) != 1 || len(records(t, dir)) != 0 {
		t.Error("removed an address that is not ours, or kept the record")
	}
}

// TestUnprivileged: without CAP_NET_ADMIN groups are joined by sockets.
func TestUnprivileged(t *testing.T) {
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	rows := []struct {
		via          Method
		capabilities []uintptr
		group        netip.Addr
		want         string
	}{
		{Auto, nil, ways[0].group, "socket <nil>"},
		{Auto, []uintptr{unix.CAP_NET_ADMIN}, ways[0].group, "netlink <nil>"},
		{Socket, nil, ways[1].group, "socket <nil>"},
		{Socket, nil, ways[2].group, "socket <nil>"},
		{Netlink, nil, ways[0].group, "operation not permitted"},
	}
	for _, row := range rows {
		t.Run(fmt.Sprint(row.via, row.capabilities, row.group), func(t *testing.T) {
			hosts, dir := pair(t), openDir(t)
			nobody.AmbientCaps = row.capabilities
			output, _ := startChild(t, hosts.A, order{"", dir, row.via, row.group}, nobody)
			if !strings.Contains(output, row.want) || isMember(t, hosts.A, row.group) != strings.Contains(output, "<nil>") {
				t.Errorf("child output: got %q, want %q", output, row.want)
			}
		})
	}
}

// openDir creates a directory that all users can write to.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcast-")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o777))
	return dir
}
