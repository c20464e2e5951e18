// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
)

// newUserRig prepares a service of an unprivileged user, with all its files in a directory of that user.
func newUserRig(t *testing.T, args ...string) *serviceRig {
	t.Helper()
	r := newManager(t)
	r.dir = cmdtest.NobodysDir(t)
	if err := os.Chmod(r.manager.LocalAddr().String(), 0o666); err != nil {
		t.Fatal(err)
	}
	r.prepareAt(t, r.manager.LocalAddr().String(), append(args, "--socket", r.path("roced.sock"))...)
	r.AsNobody(t)
	return r
}

// TestOrdinaryUser: a service without root, capabilities or kernel support serves an interface: with --network udp, by
// default, in a user namespace, and without /sys/fs/bpf. The peer's card uses XDP.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		args  string
		start func(*testing.T, *serviceRig)
		says  string
	}{
		{"chosen", "-d eth0 --network udp", func(t *testing.T, r *serviceRig) { r.Start(t) }, ""},
		{"default", "-d eth0", func(t *testing.T, r *serviceRig) { r.Start(t) }, "missing CAP_NET_RAW"},
		{"user namespace", "-d eth0 --network udp", func(t *testing.T, r *serviceRig) { r.InUserNamespace(); r.Start(t) }, ""},
		{"no BPF", "-d eth0 --network udp", func(t *testing.T, r *serviceRig) { r.StartWithoutBPF(t) }, ""},
		{"configuration", "--config", func(t *testing.T, r *serviceRig) { r.Start(t) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.name == "user namespace" {
				needs.UserNamespace(t)
			}
			hosts := labtest.Pair(t)
			args := strings.Fields(row.args)
			if row.args == "--config" {
				args = append(args, writeUserConfig(t))
			}
			user, root := newUserRig(t, append(args, "--metrics", "127.0.0.1:0")...), newRig(t, oneDevice)
			root.startIn(t, hosts.B)
			root.await(t, "READY=1", "XDP native")
			startUserIn(t, user, hosts.A, row.start)
			user.await(t, "READY=1", "eth0 active, 10.77.0.1, RDMA MTU 1024, UDP sockets")
			checkPeers(t, user, root)
			if log := user.terminate(t); !strings.Contains(log, row.says) || row.says == "" && strings.Contains(log, "level=WARN") {
				t.Errorf("want %q in the log:\n%s", row.says, log)
			}
			root.terminate(t)
		})
	}
}

func writeUserConfig(t *testing.T) string {
	t.Helper()
	file := cmdtest.NobodysDir(t) + "/roced.toml"
	if err := os.WriteFile(file, []byte(oneDevice+"network = \"udp\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func startUserIn(t *testing.T, r *serviceRig, ns *lab.Namespace, start func(*testing.T, *serviceRig)) {
	t.Helper()
	if err := ns.Do(func() error { start(t, r); return nil }); err != nil {
		t.Fatal(err)
	}
}

// checkPeers checks that a program of each service can send to one of the other.
func checkPeers(t *testing.T, a, b *serviceRig) {
	t.Helper()
	left, right := connect(t, a.path("roced.sock"), "eth0"), connect(t, b.path("roced.sock"), "eth0")
	checkSend(t, left, right.LocalAddr(), right)
	checkSend(t, right, left.LocalAddr(), left)
	left.close()
	right.close()
}

// TestOrdinaryUserNeedsAPath: if the default socket is not permitted, the error suggests another path.
func TestOrdinaryUserNeedsAPath(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	r := newUserRig(t, "-d", "eth0", "--network", "udp")
	if err := os.Chmod(r.dir, 0o555); err != nil {
		t.Fatal(err)
	}
	startUserIn(t, r, hosts.A, func(t *testing.T, r *serviceRig) { r.Start(t) })
	code, _ := r.End(t)
	if said := r.Said(); code != cli.ExitFailed || !strings.Contains(said, "permission denied; as an ordinary user set a path of your own, such as --socket /tmp/roced-65534/roced.sock") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestPortIsInUse: a second service on the interface reports the process of the first, and opens the device when that
// has ended.
func TestPortIsInUse(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	first, second := newUserRig(t, "-d", "eth0", "--network", "udp"), newUserRig(t, "-d", "eth0", "--network", "udp")
	start := func(t *testing.T, r *serviceRig) { r.Start(t) }
	startUserIn(t, first, hosts.A, start)
	first.await(t, "READY=1", "UDP sockets")
	startUserIn(t, second, hosts.A, start)
	second.await(t, "READY=1", "eth0: open eth0: bind UDP port 4791 of 10.77.0.1: address already in use", "(process ")
	first.terminate(t)
	second.await(t, "eth0 active, 10.77.0.1, RDMA MTU 1024, UDP sockets") // after a retry
	second.terminate(t)
}

// TestNetworkFlag: combinations that are rejected.
func TestNetworkFlag(t *testing.T) {
	t.Parallel()
	checkUsage(t, "--network udp", "--network requires --device")
	checkUsage(t, "--loopback --network udp", "--network requires --device")
	checkUsage(t, "-d eth9 --network tcp", "one of auto xdp udp")
}
