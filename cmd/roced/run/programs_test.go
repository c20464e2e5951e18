// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// program is a client of a service, in this process.
type program struct {
	*verbs.Context
	*ud.Endpoint
}

func (p *program) close() { p.Endpoint.Close(); p.Context.Close() }

// counts returns the counters of the card that are not zero.
func (p *program) counts() (text string) {
	all, err := p.Counters()
	for _, c := range all {
		if c.Value != 0 {
			text += fmt.Sprintf(" %s=%d", c.Name, c.Value)
		}
	}
	if err != nil {
		text += " " + err.Error()
	}
	return text
}

// connect opens a device of a service.
func connect(t *testing.T, socket, device string) *program {
	t.Helper()
	session, err := client.Dial(socket, device)
	if err != nil {
		t.Fatal(err)
	}
	c, err := verbs.Open(session)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{c, e}
	t.Cleanup(p.close)
	return p
}

// checkSend sends a message from one program, and checks that the receivers receive it.
func checkSend(t *testing.T, from *program, to ud.Addr, receivers ...*program) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text := fmt.Sprint("to ", to)
	if err := from.Send(ctx, to, []byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, r := range receivers {
		m, err := r.Recv(ctx)
		if err != nil {
			t.Fatalf("message %q does not arrive: %v; sender:%s; receiver:%s", text, err, from.counts(), r.counts())
		}
		if string(m.Data) != text || m.From != from.LocalAddr() {
			t.Errorf("%q from %v, want %q from %v", m.Data, m.From, text, from.LocalAddr())
		}
		m.Release()
	}
}

// TestPrograms: programs of two hosts communicate, each over the service of its host, and so do two programs of one
// host.
func TestPrograms(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	left, right := newRig(t, oneDevice), newRig(t, oneDevice)
	left.startIn(t, hosts.A)
	right.startIn(t, hosts.B)
	left.await(t, "READY=1")
	right.await(t, "READY=1")
	a, b, c := connect(t, left.path("roced.sock"), "eth0"), connect(t, right.path("roced.sock"), "eth0"), connect(t, right.path("roced.sock"), "")
	checkSend(t, a, b.LocalAddr(), b)
	checkSend(t, b, a.LocalAddr(), a)
	checkSend(t, b, c.LocalAddr(), c)
	right.terminate(t)
	if _, err := b.GetAsyncEvent(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.AllocPD(); !errors.Is(err, verbs.ErrDeviceFatal) {
		t.Errorf("after the service's end: %v", err)
	}
	left.terminate(t)
}

// TestProgramsWhenTheInterfaceReturns: programs are notified of the device's failure, and can open it again.
func TestProgramsWhenTheInterfaceReturns(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1", "eth0 active")
	before := connect(t, r.path("roced.sock"), "eth0")
	happened := follow(t, r.path("roced.sock"))
	if err := hosts.A.Netlink().LinkDel(cmdtest.Eth0(t, hosts.A)); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; { // read all events
		_, err = before.GetAsyncEvent(t.Context())
	}
	r.await(t, "eth0: open eth0: no such device")
	if _, err := client.Dial(r.path("roced.sock"), "eth0"); !errors.Is(err, verbs.ErrDeviceFatal) {
		t.Errorf("a device without its interface: %v", err)
	}
	addVeth(t, hosts.A, "eth0")
	r.await(t, "eth0 down")
	connect(t, r.path("roced.sock"), "eth0")
	for e := range happened { // until the event of the failure
		if e.Type == verbs.EventDeviceFatal {
			break
		}
	}
	for e := range happened {
		if e.Kind == proto.DeviceOpened && e.Device == "eth0" {
			break
		}
	}
	r.terminate(t)
}

// follow returns the future events of a service.
func follow(t *testing.T, socket string) <-chan proto.Event {
	t.Helper()
	c, err := daemon.Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	events := make(chan proto.Event, 1000)
	go func() {
		defer close(events)
		for {
			news, err := c.NextEvents()
			if err != nil {
				return
			}
			for _, e := range news.Events {
				events <- e
			}
		}
	}()
	for { // until the subscription is active
		program, err := client.Dial(socket, "eth0")
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
			return events
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestLimitsAreReloaded: a lower limit applies to new objects at once.
func TestLimitsAreReloaded(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	one := connect(t, r.path("roced.sock"), "eth0")
	r.configure(t, "limits.clients = 1\n"+oneDevice)
	r.signal(t, unix.SIGHUP)
	r.await(t, "RELOADING=1")
	r.await(t, "READY=1", "1 client")
	if _, err := client.Dial(r.path("roced.sock"), "eth0"); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a second connection: %v", err)
	}
	if _, err := one.AllocPD(); err != nil {
		t.Error(err)
	}
	r.terminate(t)
}

// TestLimitsOfAContainer: limits.container applies to a container's socket, also after a reload; without it a user's
// limits apply.
func TestLimitsOfAContainer(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice+"[limits.container]\nclients = 2\n")
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	manager, err := daemon.Dial(t.Context(), r.path("roced.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	path, err := manager.AddSocket("web")
	if err != nil {
		t.Fatal(err)
	}
	connect(t, path, "eth0")
	second := connect(t, path, "eth0")
	if _, err := client.Dial(path, "eth0"); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a third connection through the container's socket: %v", err)
	}
	for range 3 {
		connect(t, r.path("roced.sock"), "eth0")
	}
	r.configure(t, oneDevice+"[limits.container]\npd = 3\n")
	r.signal(t, unix.SIGHUP)
	r.await(t, "RELOADING=1")
	r.await(t, "READY=1")
	connect(t, path, "eth0")
	if _, err := second.AllocPD(); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a protection domain above the limit: %v", err)
	}
	looker, err := daemon.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer looker.Close()
	if d, err := looker.QueryDevice("eth0"); err != nil || d.Attr.MaxPD != 3 {
		t.Errorf("the device reports a limit of %d protection domains, %v", d.Attr.MaxPD, err)
	}
	r.terminate(t)
}

// newLoopback starts an unprivileged service on an in-memory network.
func newLoopback(t *testing.T, args ...string) *serviceRig {
	t.Helper()
	r := newManager(t)
	r.prepare(t, append([]string{"--loopback", "--socket", r.path("roced.sock")}, args...)...)
	r.StartWithout(t, allCapabilities()...)
	t.Cleanup(func() { r.Process.Kill() })
	r.await(t, "READY=1", "in-memory network")
	return r
}

func allCapabilities() (list []int) {
	for c := range unix.CAP_LAST_CAP + 1 {
		if c != unix.CAP_SETPCAP { // which is needed to drop the others
			list = append(list, c)
		}
	}
	return append(list, unix.CAP_SETPCAP)
}

// TestLoopback: each process is a host, and named hosts are devices. Unicast and groups work, and all sessions of a
// process have one address.
func TestLoopback(t *testing.T) {
	t.Parallel()
	r := newLoopback(t, "--host", "server=10.1.2.3,fd00::3", "--host", "peer=10.1.2.4")
	socket := r.path("roced.sock")
	a, b, server := connect(t, socket, "loop"), connect(t, socket, "peer"), connect(t, socket, "server")
	for _, row := range []struct {
		p    *program
		want string
	}{{a, "10.88.0.1"}, {b, "10.1.2.4"}, {server, "10.1.2.3"}} {
		if got := row.p.LocalAddr().GID.Addr().Unmap(); got != netip.MustParseAddr(row.want) {
			t.Errorf("a host has %v, want %s", got, row.want)
		}
	}
	checkSend(t, a, b.LocalAddr(), b)
	checkSend(t, b, server.LocalAddr(), server)
	checkSend(t, server, a.LocalAddr(), a)
	group := netip.MustParseAddr("239.1.2.3")
	for _, p := range []*program{a, server} {
		if err := p.Join(group); err != nil {
			t.Fatal(err)
		}
	}
	checkSend(t, b, ud.Group(group), a, server)
	again := connect(t, socket, "loop")
	checkSend(t, a, again.LocalAddr(), again)
	a.close()
	for _, p := range []*program{again, connect(t, socket, "loop")} {
		if got := p.LocalAddr().GID.Addr().Unmap(); got != netip.MustParseAddr("10.88.0.1") {
			t.Errorf("a session of the same process has %v", got)
		}
	}
	r.terminate(t)
}

// TestSuccessor: a service that ends does not remove the sockets of a service that now uses its paths.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	first := newLoopback(t)
	paths := []string{first.path("roced.sock"), first.path("metrics.sock")}
	first.terminate(t)
	start := func() *serviceRig {
		r := newManager(t)
		r.prepare(t, "--loopback", "--socket", paths[0], "--metrics", "unix:"+paths[1])
		r.Start(t)
		r.await(t, "READY=1")
		return r
	}
	first = start()
	for _, path := range paths {
		if err := os.Remove(path); err != nil { // so that a second can start before the first ends
			t.Fatal(err)
		}
	}
	second := start()
	first.terminate(t)
	connect(t, paths[0], "loop").close()
	text := cmdtest.Scrape(t, paths[1])
	for _, want := range []string{`roced_device_open{device="loop"} 1`, `roced_port_active{device="loop"} 1`, `roced_bytes_total{device="loop",direction="sent"} 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	second.terminate(t)
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left: %s, %v", path, err)
		}
	}
}

func TestLoopbackErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, want string }{
		{"--loopback -d nowhere0", "cannot be combined with --config or --device"},
		{"-d nowhere0 --host a=10.0.0.1", "--host requires --loopback"},
		{"-d nowhere0 --network udp --workers 2", "one worker"},
		{"--workers 2", "--workers requires --device"},
		{"--loopback --workers 2", "--workers requires --host"},
		{"--loopback --host a=10.0.0.1 --workers 9", "--workers must be from 1 to 8"},
		{"-d nowhere0 --mode 0888", "--mode: permissions"},
		{"-d nowhere0 --mode 4755", "--mode: permissions"},
		{"--loopback --host a", "must be NAME=ADDRESS"},
		{"--loopback --host loop=10.0.0.1", "is reserved"},
		{"--loopback --host a=b", `"b" is not an IP address`},
		{"--loopback --host a=224.0.0.1", "a group's address"},
		{"--loopback --host a=10.0.0.1 --host a=10.0.0.2", "already has this name"},
		{"--loopback --host a=10.0.0.1 --host b=10.0.0.1", "belongs to --host a already"},
		{"--loopback --host a=10.0.0.1,10.0.0.1", "duplicate address 10.0.0.1"},
		{"--loopback --pool 10.0.0.1", "--pool must be a network"},
	} {
		checkUsage(t, row.args, row.want)
	}
}
