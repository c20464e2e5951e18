// SPDX-License-Identifier: Apache-2.0

package run

import (
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const oneDevice = "[[device]]\ninterface = \"eth0\"\n"

// TestLifetime: the service reports that it is ready, with a status. The socket has the configured permissions. SIGTERM
// ends the service, and nothing is left behind.
func TestLifetime(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, "socket.mode = \"0620\"\n"+oneDevice)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1", "STATUS=0 clients; eth0 active, 10.77.0.1, RDMA MTU 1024, XDP native")
	info, err := os.Stat(r.path("roced.sock"))
	if err != nil || info.Mode() != os.ModeSocket|0o620 {
		t.Errorf("%v, %v", info, err)
	}
	conn, err := net.Dial("unixpacket", r.path("roced.sock"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	log := r.terminate(t)
	for _, want := range []string{"msg=ready", "msg=stopping", "device=eth0", "level=INFO"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if _, err := os.Stat(r.path("roced.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if link := cmdtest.Eth0(t, hosts.A); link.Attrs().Xdp != nil && link.Attrs().Xdp.Attached {
		t.Error("the XDP program is left")
	}
}

// TestInterfaceReturns: the status reports a missing interface, and its return. Meanwhile other devices are served.
func TestInterfaceReturns(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	addVeth(t, hosts.A, "eth1")
	r := newRig(t, oneDevice+"[[device]]\ninterface = \"eth1\"\n[[device]]\ninterface = \"eth2\"\n")
	r.startIn(t, hosts.A)
	r.await(t, "READY=1", "eth0 active", "eth1 down, no address", `eth2: open eth2: no such device: no interface "eth2"`)
	link, err := hosts.A.Netlink().LinkByName("eth1")
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.A.Netlink().LinkDel(link); err != nil {
		t.Fatal(err)
	}
	r.await(t, "eth0 active", "eth1: open eth1: no such device")
	addVeth(t, hosts.A, "eth1")
	r.await(t, "eth0 active", "eth1 down")
	addVeth(t, hosts.A, "eth2")
	r.await(t, "eth2 down")
	log := r.terminate(t)
	if n := strings.Count(log, "cannot open the device"); n < 2 || n > 20 {
		t.Errorf("%d lines report that a device cannot be opened:\n%s", n, log)
	}
}

// addVeth creates an interface that is up, with the other end down.
func addVeth(t *testing.T, ns *lab.Namespace, name string) {
	t.Helper()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}
	if err := ns.Netlink().LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	if err := ns.Netlink().LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
}

// TestReload: devices are added and removed, changes that require a restart are reported each time, and an
// invalid configuration changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	addVeth(t, hosts.A, "eth1")
	r := newRig(t, oneDevice)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	reload := func(text string, want ...string) {
		t.Helper()
		r.configure(t, text)
		r.signal(t, unix.SIGHUP)
		r.await(t, "RELOADING=1\nMONOTONIC_USEC=")
		r.await(t, append(want, "READY=1")...)
	}
	reload(oneDevice+"spin = 20\n", "STATUS=invalid configuration", "eth0 active")
	reload(oneDevice+"spin = \"5us\"\nmetrics.listen=\"\"\n[[device]]\ninterface = \"eth1\"\n", "STATUS=invalid configuration")
	reload("access.privileged_group = \"0\"\n"+oneDevice+"spin = \"5us\"\n[[device]]\ninterface = \"eth1\"\n", "eth0 active", "; eth1 down")
	reload("log_level = \"debug\"\n"+oneDevice+"xdp = \"generic\"\n", "STATUS=0 clients; eth0 active, 10.77.0.1, RDMA MTU 1024, XDP native, AF_XDP copy")
	reload("[[device]]\ninterface = \"eth0\"\nname = \"roce0\"\nxdp = \"generic\"\n", "STATUS=0 clients; roce0 active, 10.77.0.1, RDMA MTU 1024, XDP generic")
	log := r.terminate(t)
	for _, want := range []string{
		"device.spin: invalid number 20; use a duration", `keys="access, eth0.spin"`, `keys=eth0.xdp`, "removing device",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// TestSocketActivation: systemd's socket is served, and kept when the service ends.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice)
	r.passSocket(t)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	conn, err := net.Dial("unixpacket", r.path("passed.sock"))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := os.Stat(r.path("roced.sock")); !os.IsNotExist(err) {
		t.Errorf("the service also created its own socket: %v", err)
	}
	r.terminate(t)
	if _, err := os.Stat(r.path("passed.sock")); err != nil {
		t.Error(err)
	}
}

// TestWatchdog: the watchdog is notified repeatedly.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice)
	r.Env = append(r.Env, "WATCHDOG_USEC=100000")
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	for range 3 {
		r.await(t, "WATCHDOG=1")
	}
	r.terminate(t)
}

// TestMetrics: metrics on a unix socket, added and removed by a reload.
func TestMetrics(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, "")
	listen := "metrics.listen = \"unix:" + r.path("metrics.sock") + "\"\n"
	r.configure(t, listen+oneDevice)
	r.startIn(t, hosts.A)
	r.await(t, "READY=1")
	text := cmdtest.Scrape(t, r.path("metrics.sock"))
	for _, want := range []string{
		"roced_clients 0\n", `roced_device_open{device="eth0"} 1`, `roced_port_active{device="eth0"} 1`,
		`roced_dropped_packets_total{device="eth0",place="engine",reason="drop_qkey"} 0`,
		`roced_packets_total{counter="pass_not_roce",device="eth0",place="XDP"}`, `roced_bytes_total{device="eth0",direction="sent"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	r.configure(t, oneDevice)
	r.signal(t, unix.SIGHUP)
	r.await(t, "RELOADING=1")
	r.await(t, "READY=1")
	if _, err := os.Stat(r.path("metrics.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	r.terminate(t)
}

// TestNoDevice: the service runs without a device, as after installation, and names the configuration
// file.
func TestNoDevice(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, "")
	r.startIn(t, hosts.A)
	r.await(t, "READY=1", "STATUS=0 clients; no device: add one to "+r.path("roced.toml"))
	r.configure(t, oneDevice)
	r.signal(t, unix.SIGHUP)
	r.await(t, "RELOADING=1")
	r.await(t, "READY=1", "eth0 active")
	r.terminate(t)
}

// TestFailures: each failure ends with a line that has a remedy.
func TestFailures(t *testing.T) {
	t.Parallel()
	cmdtest.CheckFailure(t, []string{"run", "x"}, cli.ExitUsage, "no argument")
	cmdtest.CheckFailure(t, []string{"run", "--config", "/nonexistent"}, cli.ExitUsage, "no such file")
	cmdtest.CheckFailure(t, []string{"run", "-d", "eth0", "-d", "eth0"}, cli.ExitUsage, "already")
	cmdtest.CheckFailure(t, []string{"run", "-d", "nope0", "--log-level", "x"}, cli.ExitUsage, "log-level")
}

// TestMissingCapabilities: the service ends without retrying.
func TestMissingCapabilities(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice+"network = \"xdp\"\n")
	if err := hosts.A.Do(func() error { r.StartWithout(t, unix.CAP_NET_RAW); return nil }); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.End(t); code != cli.ExitFailed || !strings.Contains(r.Said(), "CAP_NET_RAW") {
		t.Errorf("exit code %d: %s", code, r.Said())
	}
}

// TestFailsWithSystemdsSocket: the service also ends if it fails before it serves systemd's socket.
func TestFailsWithSystemdsSocket(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newRig(t, oneDevice+"network = \"xdp\"\n")
	r.passSocket(t)
	if err := hosts.A.Do(func() error { r.StartWithout(t, unix.CAP_NET_RAW); return nil }); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.End(t); code != cli.ExitFailed {
		t.Errorf("exit code %d: %s", code, r.Said())
	}
}

// TestErrors: each error is printed on a line.
func TestErrors(t *testing.T) {
	t.Parallel()
	r := newManager(t)
	r.configure(t, "nonsense = 1\nspin = 2\n")
	code, _, stderr := cmdtest.Run(t, "run", "--config", r.path("roced.toml"))
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if code != cli.ExitUsage || len(lines) != 3 || !strings.Contains(lines[0], ":3:1: nonsense") || !strings.Contains(lines[1], ":4:1: spin") || !strings.HasPrefix(lines[2], "roced: 2 errors in ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestPermissionsOfTheSocket: --group and --mode have priority over the file and the defaults.
func TestPermissionsOfTheSocket(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		o     options
		mode  fs.FileMode
		group string
	}{
		{options{devices: []string{"a"}}, 0o660, ""},
		{options{devices: []string{"a"}, group: "roced", mode: "0620"}, 0o620, "roced"},
		{options{memory: loopbackFlags{on: true}}, 0o600, ""},
		{options{memory: loopbackFlags{on: true}, group: "users"}, 0o660, "users"},
		{options{memory: loopbackFlags{on: true}, mode: "0666"}, 0o666, ""},
	} {
		c, err := row.o.load()
		if err != nil {
			t.Fatal(err)
		}
		if c.Socket.Mode != row.mode || c.Socket.Group != row.group {
			t.Errorf("%+v: mode %v, group %q", row.o, c.Socket.Mode, c.Socket.Group)
		}
	}
}
