// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func newNetwork(t *testing.T, pools, hosts []string) *Network {
	t.Helper()
	o, err := ParseOptions(pools, hosts)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestPoolIsExhausted: a session without a free address fails. Addresses of named hosts are not assigned; those of
// ended sessions are reused.
func TestPoolIsExhausted(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/30", "fd00::/64"}, []string{"server=10.0.0.2"})
	device := n.Devices()[0]
	var sessions []*hca.Session
	for range 2 {
		s, err := device.NewSession(hca.SessionConfig{})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if _, err := device.NewSession(hca.SessionConfig{}); !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), "--pool") {
		t.Errorf("exhausted pool: %v", err)
	}
	for i, want := range []string{"10.0.0.1", "10.0.0.3"} {
		grant, err := provider.Do(sessions[i], provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
		if err != nil || grant.Entries[0].GID.Addr().Unmap() != netip.MustParseAddr(want) || len(grant.Entries) != 2 {
			t.Errorf("%+v, %v, want %s", grant, err, want)
		}
	}
	if err := sessions[0].Close(); err != nil {
		t.Error(err)
	}
	for {
		s, err := device.NewSession(hca.SessionConfig{})
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			break
		}
		if !errors.Is(err, verbs.ErrLimit) {
			t.Fatal(err)
		}
	}
	if err := sessions[1].Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusedSession: the addresses and the host of a session that is not created are released.
func TestRefusedSession(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/31"}, nil)
	device := n.Devices()[0]
	for range 3 {
		if _, err := device.NewSession(hca.SessionConfig{Limits: hca.Limits{QPs: -1}}); !errors.Is(err, verbs.ErrInvalid) {
			t.Fatal(err)
		}
	}
	s, err := device.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestNamesOfDevices(t *testing.T) {
	n := newNetwork(t, DefaultPools, []string{"a=10.1.0.1,fd01::1", "b=10.1.0.2"})
	var names []string
	for _, d := range n.Devices() {
		names = append(names, d.Name())
	}
	if got := strings.Join(names, " "); got != "loop a b" {
		t.Error(got)
	}
}

// TestLoopIsSeen: the device can be queried without a program, it lists the addresses of all programs, and its counters
// include those of ended programs.
func TestLoopIsSeen(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/24"}, []string{"server=10.0.0.9"})
	loop := n.Devices()[0]
	attr, err := provider.Do(loop, provider.QueryDevice, provider.None{})
	port, failed := provider.Do(loop, provider.QueryPort, provider.QueryPortRequest{Port: 1})
	if err != nil || failed != nil || attr.Name != Name || attr.MaxQP == 0 || port.State != verbs.PortActive {
		t.Errorf("%+v, %v, %+v, %v", attr, err, port, failed)
	}
	if gids := gidsOf(t, loop); len(gids) != 0 {
		t.Errorf("without programs: %v", gids)
	}
	sender, err := loop.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if gids := gidsOf(t, loop); strings.Join(gids, " ") != "loop1 10.0.0.1" {
		t.Errorf("with a program: %v", gids)
	}
	c, err := verbs.Open(sender)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Send(t.Context(), e.LocalAddr(), []byte("to itself")), receive(t, e)); err != nil {
		t.Fatal(err)
	}
	before := loopback(t, loop)
	if before == 0 {
		t.Fatal("no packets are counted")
	}
	for sendToGroup(t, n.Devices()[1]); count(t, loop, "drop_no_group") == 0; {
		time.Sleep(time.Millisecond)
	}
	if err := errors.Join(e.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	for len(gidsOf(t, loop)) > 0 {
		if now := loopback(t, loop); now != before {
			t.Fatalf("counter is %d while the program ends; it was %d", now, before)
		}
	}
	if got := count(t, loop, "drop_no_group"); got != 1 { // only by the program's host
		t.Errorf("a message to a group was counted as dropped %d times", got)
	}
	if now := loopback(t, loop); now != before {
		t.Errorf("counter is %d after the program's end; it was %d", now, before)
	}
}

func receive(t *testing.T, e *ud.Endpoint) error {
	m, err := e.Recv(t.Context())
	if err == nil {
		m.Release()
	}
	return err
}

// gidsOf returns the hosts and addresses of a device.
func gidsOf(t *testing.T, d Device) (list []string) {
	t.Helper()
	table, err := provider.Do(d, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range table.Entries {
		list = append(list, e.Interface+" "+e.GID.Addr().Unmap().String())
	}
	return list
}

// sendToGroup sends a message from a device to a group without members, and waits until it has been sent.
func sendToGroup(t *testing.T, from Device) {
	t.Helper()
	s, err := from.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := verbs.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Send(t.Context(), ud.Group(netip.MustParseAddr("239.1.2.3")), []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func loopback(t *testing.T, d Device) uint64 {
	t.Helper()
	return count(t, d, "loopback")
}

func count(t *testing.T, d Device, name string) uint64 {
	t.Helper()
	list, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no such counter in %v", list)
	return 0
}

// TestHostOfAProcess: all sessions of a process are on one host, with the attributes that were queried before. The host
// exists until the process and its sessions have ended.
func TestHostOfAProcess(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/29"}, nil)
	device := n.guests
	program := needs.Command(t, "sleep", "1000")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Process.Kill() }()
	process := server.Process{PID: program.Process.Pid, UID: 7}
	queried, err := device.QueryDeviceOf(process)
	if err != nil || queried.NodeGUID == 0 {
		t.Fatal(queried, err)
	}
	open := func(process any) (*hca.Session, verbs.DeviceAttr) {
		t.Helper()
		s, err := device.NewSession(hca.SessionConfig{Process: process})
		if err != nil {
			t.Fatal(err)
		}
		attr, err := provider.Do(s, provider.QueryDevice, provider.None{})
		if err != nil {
			t.Fatal(err)
		}
		return s, attr
	}
	one, first := open(process)
	two, second := open(process)
	if first.NodeGUID != queried.NodeGUID || second.NodeGUID != queried.NodeGUID {
		t.Errorf("got %x and %x, queried %x", first.NodeGUID, second.NodeGUID, queried.NodeGUID)
	}
	other, third := open(server.Process{PID: program.Process.Pid, UID: 8})
	if third.NodeGUID == queried.NodeGUID {
		t.Error("two processes are on one host")
	}
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = program.Wait()
	waittest.Eventually(t, "the other process's host is closed", func() bool { return len(gidsOf(t, device)) == 1 })
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	waittest.Eventually(t, "all hosts are closed", func() bool { return len(gidsOf(t, device)) == 0 })
}

// TestHostWithoutDescriptors: a process gets no host if there is no descriptor to wait for its end. Otherwise each
// query would create another host.
func TestHostWithoutDescriptors(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/30"}, nil)
	process := server.Process{PID: os.Getpid()}
	for more, served := uint64(0), false; !served; more++ {
		if more > 100 {
			t.Fatal("no host even with many descriptors")
		}
		err := belowDescriptor(t, more, func() error {
			_, err := n.guests.QueryDeviceOf(process)
			return err
		})
		served = err == nil
		if err != nil && !errors.Is(err, unix.EMFILE) {
			t.Fatal(err)
		}
		if kept := len(n.guests.known) == 1; kept != served {
			t.Fatalf("with %d descriptors: %v, and the host is kept: %v", more, err, kept)
		}
	}
}

// belowDescriptor runs a function with a limit that permits only the given number of additional descriptors.
func belowDescriptor(t *testing.T, more uint64, run func() error) error {
	t.Helper()
	var was unix.Rlimit
	next, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err := errors.Join(err, unix.Close(next), unix.Getrlimit(unix.RLIMIT_NOFILE, &was)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + more, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return run()
}

// TestAlone: the only process on the network is alone until it has sent a packet, or until another process has been on
// the network.
func TestAlone(t *testing.T) {
	session := func(n *Network) *hca.Session {
		t.Helper()
		s, err := n.Devices()[0].NewSession(hca.SessionConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	alone := netip.MustParseAddr("10.0.0.1")
	expect := func(what string, n *Network, want netip.Addr) {
		t.Helper()
		if got := n.Alone(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	n := newNetwork(t, []string{"10.0.0.0/24"}, nil)
	expect("none", n, netip.Addr{})
	first := session(n)
	expect("one", n, alone)
	second := session(n)
	expect("two", n, netip.Addr{})
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "the second host is closed", func() bool {
		n.guests.mu.Lock()
		defer n.guests.mu.Unlock()
		return len(n.guests.hosts) == 1
	})
	expect("one that is left", n, netip.Addr{})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	n = newNetwork(t, []string{"10.0.0.0/24"}, nil)
	c, err := verbs.Open(session(n))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	expect("one that has sent nothing", n, alone)
	if err := e.Send(t.Context(), e.LocalAddr(), []byte("to itself")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Recv(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("one that has sent to itself", n, netip.Addr{})
	if err := errors.Join(e.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
}
