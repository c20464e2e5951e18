// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

// outside is a service in its own namespace. Its programs are in two other namespaces, which a bridge connects.
type outside struct {
	*labtest.SwitchLab
	own     *lab.Namespace
	service *cmdtest.Child
	socket  string
}

// startOutside starts the service with keys of [namespaces].
func startOutside(t *testing.T, keys string) *outside {
	t.Helper()
	o := &outside{SwitchLab: labtest.Switched(t), own: labtest.New(t, "labtest-service")}
	for _, hosts := range []*lab.Namespace{o.A, o.B} {
		if err := hosts.AddRoute("0.0.0.0/0", "10.77.0.254"); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	o.socket = filepath.Join(dir, "roced.sock")
	text := fmt.Sprintf("state_dir = %q\nsocket.path = %q\nsocket.mode = \"0666\"\n[namespaces]\ndevice = \"net0\"\n%s\n", dir, o.socket, keys)
	file := filepath.Join(dir, "roced.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.start(t, file)
	return o
}

func (o *outside) start(t *testing.T, file string) {
	t.Helper()
	o.service = cmdtest.Command(t, "run", "--config", file)
	in(t, o.own, o.service)
	waittest.Eventually(t, "the service is ready", func() bool { _, err := os.Stat(o.socket); return err == nil })
}

// in starts a child in a namespace.
func in(t *testing.T, ns *lab.Namespace, c *cmdtest.Child) *cmdtest.Child {
	t.Helper()
	if err := ns.Do(func() error { c.Start(t); return nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

// roced starts a command in a namespace. The command uses the service.
func (o *outside) roced(t *testing.T, ns *lab.Namespace, args string) *cmdtest.Child {
	t.Helper()
	fields := strings.Fields(args)
	return in(t, ns, cmdtest.Command(t, append(fields, "--service="+o.socket)...))
}

// says runs a command to its end and returns all of its output.
func (o *outside) says(t *testing.T, ns *lab.Namespace, args string) (code int, said string) {
	t.Helper()
	c := o.roced(t, ns, args)
	code, stdout := c.End(t)
	return code, stdout + c.Said()
}

// hasXDP reports whether a program is attached to a host's interface.
func hasXDP(t *testing.T, ns *lab.Namespace) bool {
	t.Helper()
	link := cmdtest.Eth0(t, ns)
	return link.Attrs().Xdp != nil && link.Attrs().Xdp.Attached
}

// exchange runs a ping between programs of both namespaces.
func (o *outside) exchange(t *testing.T) {
	t.Helper()
	server := o.roced(t, o.A, "ping -d net0 -p 18999 -n 20")
	server.Await(t, "waiting")
	code, said := o.says(t, o.B, "ping -d net0 -p 18999 -n 20 10.77.0.1")
	if code != 0 || !strings.Contains(said, "::ffff:10.77.0.2") {
		t.Fatalf("client: exit code %d: %s", code, said)
	}
	if code, rest := server.End(t); code != 0 {
		t.Fatalf("server: exit code %d: %s%s", code, rest, server.Said())
	}
}

// TestCardsInCallersNamespaces: a service outside of two namespaces opens a card in each for its programs, with the
// namespace's addresses, and closes it after the last program.
func TestCardsInCallersNamespaces(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"xdp", "udp"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			o := startOutside(t, fmt.Sprintf("network = %q", network))
			for range 2 { // the second time, the card is opened again
				o.exchange(t)
				for _, ns := range []*lab.Namespace{o.A, o.B} {
					waittest.Eventually(t, "no program is attached after the last program", func() bool { return !hasXDP(t, ns) })
				}
			}
			if _, said := o.says(t, o.A, "show dev"); !strings.Contains(said, "net0") {
				t.Errorf("the list of devices in a namespace lacks net0: %s", said)
			}
			if code, said := o.says(t, o.own, "ping -d net0 10.77.0.1"); code == 0 || !strings.Contains(said, "other network namespaces") {
				t.Errorf("a card was opened in the service's own namespace: %s", said)
			}
		})
	}
}

// TestMetricsOfNamespaces: metrics contain the sum of cards in namespaces, including closed ones.
func TestMetricsOfNamespaces(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "metrics.sock")
	o := startOutside(t, fmt.Sprintf("network = \"udp\"\n[metrics]\nlisten = \"unix:%s\"", at))
	says := func(metrics string, lines ...string) bool {
		for _, line := range lines {
			if !strings.Contains(metrics, "\nroced_"+line+"\n") {
				return false
			}
		}
		return true
	}
	waittest.Eventually(t, "metrics are served", func() bool { // the socket for programs may exist earlier
		_, err := os.Stat(at)
		return err == nil
	})
	if m := cmdtest.Scrape(t, at); !says(m, `device_open{device="net0"} 0`, `device_opens_total{device="net0"} 0`, `bytes_total{device="net0",direction="delivered"} 0`) {
		t.Errorf("before the first program: %s", m)
	}
	server := o.roced(t, o.A, "ping -d net0 -p 18999")
	server.Await(t, "waiting")
	if m := cmdtest.Scrape(t, at); !says(m, `device_open{device="net0"} 1`, `port_active{device="net0"} 1`, `device_opens_total{device="net0"} 1`) {
		t.Errorf("with a program: %s", m)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.End(t)
	o.exchange(t)
	waittest.Eventually(t, "no card is open", func() bool { return says(cmdtest.Scrape(t, at), `device_open{device="net0"} 0`) })
	m := cmdtest.Scrape(t, at)
	if !says(m, `device_opens_total{device="net0"} 3`) || says(m, `bytes_total{device="net0",direction="delivered"} 0`) {
		t.Errorf("after three programs: %s", m)
	}
}

// TestOthersNamespaces: a program can open only the card of its own namespace, and cannot query objects in other
// namespaces, even as root.
func TestOthersNamespaces(t *testing.T) {
	t.Parallel()
	o := startOutside(t, `network = "udp"`)
	server := o.roced(t, o.A, "ping -d net0 -p 18999")
	server.Await(t, "waiting")
	if _, said := o.says(t, o.A, "show gid"); !strings.Contains(said, "10.77.0.1") {
		t.Errorf("GIDs in the program's namespace: %s", said)
	}
	for _, look := range []string{"show gid", "show client", "show qp", "show cm", "show stat"} {
		if _, said := o.says(t, o.B, look); strings.Contains(said, "10.77.0.1") || strings.Contains(said, "ping") {
			t.Errorf("%s from another namespace: %s", look, said)
		}
	}
	if code, said := o.says(t, o.B, "monitor"); code == 0 || !strings.Contains(said, "not permitted") {
		t.Errorf("monitor from another namespace: exit code %d: %s", code, said)
	}
	for _, name := range []string{"eth0", "/proc/1/ns/net", "net0@" + o.A.Name()} {
		if code, said := o.says(t, o.B, "ping -d "+name+" 10.77.0.1"); code == 0 {
			t.Errorf("device %s: %s", name, said)
		}
	}
}

// TestCardsArePermitted: no card is opened for users and namespaces that are not configured, or above the limit.
func TestCardsArePermitted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ keys, want string }{
		{`users = "4711"`, "namespaces.users"},
		{`folder = "/nonexistent"`, "namespaces.folder"},
	} {
		o := startOutside(t, "network = \"udp\"\n"+row.keys)
		if code, said := o.says(t, o.A, "ping -d net0"); code == 0 || !strings.Contains(said, row.want) {
			t.Errorf("%s: exit code %d: %s", row.keys, code, said)
		}
	}
	o := startOutside(t, "network = \"udp\"\nfolder = \"/run/netns\"\ncards = 1")
	server := o.roced(t, o.A, "ping -d net0 -p 18999")
	server.Await(t, "waiting")
	if code, said := o.says(t, o.B, "ping -d net0"); code == 0 || !strings.Contains(said, "namespaces.cards") {
		t.Errorf("a card above the limit: exit code %d: %s", code, said)
	}
}

// TestEndsInNamespaces: nothing is left behind if the service is killed, or if an interface is destroyed with its
// namespace.
func TestEndsInNamespaces(t *testing.T) {
	t.Parallel()
	o := startOutside(t, `network = "xdp"`)
	a, b := o.roced(t, o.A, "ping -d net0 -p 18999"), o.roced(t, o.B, "ping -d net0 -p 18999")
	a.Await(t, "waiting")
	b.Await(t, "waiting")
	if !hasXDP(t, o.A) || !hasXDP(t, o.B) {
		t.Fatal("no XDP program is attached while programs run")
	}
	if err := o.B.Netlink().LinkDel(cmdtest.Eth0(t, o.B)); err != nil { // as when its namespace is deleted
		t.Fatal(err)
	}
	waittest.Eventually(t, "a program's error reports the missing interface", func() bool {
		code, said := o.says(t, o.B, "ping -d net0")
		return code != 0 && strings.Contains(said, "exactly one interface")
	})
	if err := o.service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "no XDP program of the killed service is attached", func() bool { return !hasXDP(t, o.A) })
}
