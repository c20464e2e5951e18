// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/ud"
)

// started is a running roced exec. Its program has printed the service's socket, and ends at the end of its input.
type started struct {
	*cmdtest.Child
	socket string
	input  io.Closer
}

// startAsNobody is start as the user nobody.
func startAsNobody(t *testing.T, ns *lab.Namespace, args ...string) *started {
	return start(t, ns, true, args...)
}

// start starts roced exec in a network namespace; nil means that of the test.
func start(t *testing.T, ns *lab.Namespace, asNobody bool, args ...string) *started {
	t.Helper()
	args = append(append([]string{"exec", "--libraries", newLibraries(t)}, args...), "sh", "-c", "echo at $ROCED_SOCKET; read x")
	child := cmdtest.Command(t, args...)
	if asNobody {
		child.AsNobody(t)
	}
	child.Env = append(child.Env, "TMPDIR="+cmdtest.NobodysDir(t), "ROCED_SOCKET=")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if ns == nil {
		child.Start(t)
	} else if err := ns.Do(func() error { child.Start(t); return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close() })
	return &started{child, strings.TrimPrefix(strings.TrimSpace(child.Await(t, "at ")), "at "), input}
}

// finish ends the program by closing its input.
func (s *started) finish(t *testing.T) {
	t.Helper()
	s.input.Close()
	if code, rest := s.End(t); code != 1 || rest != "" { // the status of read at the end of its input
		t.Errorf("exit code %d, %q, %s", code, rest, s.Said())
	}
}

// open opens a device of the service.
func (s *started) open(t *testing.T, device string) *verbs.Context {
	t.Helper()
	session, err := client.Dial(s.socket, device)
	if err != nil {
		t.Fatal(err)
	}
	c, err := verbs.Open(session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func listen(t *testing.T, c *verbs.Context) *ud.Endpoint {
	t.Helper()
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestInterface: unprivileged programs communicate with programs of root on another host, over the existing interface.
func TestInterface(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a, b := startAsNobody(t, hosts.A, "--network", "udp"), start(t, hosts.B, false, "--network", "xdp", "-d", "eth0")
	from, to := listen(t, a.open(t, "eth0")), listen(t, b.open(t, "eth0"))
	if err := from.Send(t.Context(), to.LocalAddr(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	m, err := to.Recv(t.Context())
	if err != nil || string(m.Data) != "hello" {
		t.Errorf("%v, %v", m, err)
	}
}

// TestHosts: named hosts have fixed addresses, which are not assigned to processes.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := startAsNobody(t, nil, "--network", "loopback", "--hosts", "2")
	for device, want := range map[string]string{"host1": "10.88.0.1", "host2": "10.88.0.2", "loop": "10.88.0.3"} {
		entry, err := s.open(t, device).QueryGID(1, 0)
		if err != nil || entry.GID.Addr().Unmap().String() != want {
			t.Errorf("%s: %+v, %v; want %s", device, entry, err, want)
		}
	}
}

// TestPrivateNetworks: hosts of two commands have different addresses and cannot reach each other. In each network,
// 10.88.0.1 is the first host.
func TestPrivateNetworks(t *testing.T) {
	t.Parallel()
	var addresses [2]netip.Addr
	var devices [2]*verbs.Context
	for i := range devices {
		devices[i] = startAsNobody(t, nil, "--network", "loopback").open(t, "loop")
		entry, err := devices[i].QueryGID(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = entry.GID.Addr().Unmap()
		if _, _, err := kernel.FindGID(devices[i], verbs.GIDFromAddr(netip.MustParseAddr("10.88.0.1"))); err != nil {
			t.Errorf("10.88.0.1 is not an address of the first host: %v", err)
		}
	}
	if addresses[0] == addresses[1] {
		t.Errorf("hosts of two networks have the address %v", addresses[0])
	}
	for i, c := range devices {
		pd, err := c.AllocPD()
		if err != nil {
			t.Fatal(err)
		}
		_, err = pd.CreateAH(t.Context(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addresses[1-i])}})
		if !errors.Is(err, verbs.ErrUnreachable) {
			t.Errorf("%v from %v: %v, want %v", addresses[1-i], addresses[i], err, verbs.ErrUnreachable)
		}
	}
}

// TestWaitsAlone: if the only program on the network has sent and received nothing, the command reports that programs
// of other commands cannot reach it.
func TestWaitsAlone(t *testing.T) {
	t.Parallel()
	s := startAsNobody(t, nil, "--network", "loopback")
	entry, err := s.open(t, "loop").QueryGID(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	said := func() bool { return strings.Contains(s.Said(), "is waiting alone") }
	waittest.Eventually(t, "the report", said)
	for _, want := range []string{entry.GID.Addr().Unmap().String(), "below one roced exec", "roced run --loopback"} {
		if !strings.Contains(s.Said(), want) {
			t.Errorf("%q does not contain %q", s.Said(), want)
		}
	}
}

// TestReportAndCapture: drops are reported at the end, and are recorded in the capture with their reason.
func TestReportAndCapture(t *testing.T) {
	t.Parallel()
	file := filepath.Join(cmdtest.NobodysDir(t), "x.pcapng")
	s := startAsNobody(t, nil, "--network", "loopback", "--hosts", "2", "--report", "--capture", file)
	from, to := listen(t, s.open(t, "host1")), listen(t, s.open(t, "loop"))
	wrong := to.LocalAddr()
	wrong.QKey ^= 1
	for _, addr := range []ud.Addr{wrong, to.LocalAddr()} {
		if err := from.Send(t.Context(), addr, []byte("to be seen")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := to.Recv(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.finish(t)
	want := "roced: dropped: loop engine drop_qkey 1\nroced: retransmitted: nothing\nroced: congestion: nothing\n"
	if said := s.Said(); !strings.Contains(said, want) {
		t.Errorf("%s, want %s", said, want)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"to be seen", "host1: sent", "loop1: delivered to QP 0x", "loop1: dropped"} {
		if !bytes.Contains(written, []byte(want)) {
			t.Errorf("the capture has no %q", want)
		}
	}
}
