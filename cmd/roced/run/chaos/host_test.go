// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/kernel"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// host is a namespace and its service.
type host struct {
	*lab.Namespace
	name    string
	network string // xdp or udp
	folder  string // of its configuration, state, log and socket
	cidrs   []string

	mu      sync.Mutex
	service *exec.Cmd
}

// queues is the number of receive and send queues of the links; see withQueues.
const queues = 3

// limits are low enough for a program to reach them.
const limits = `[limits]
clients = 8
pd = 16
mr = 64
cq = 64
qp = 64
ah = 256
memory = "64MiB"
`

func newHost(t *testing.T, ns *lab.Namespace, name, network string, workers int, cidrs ...string) *host {
	t.Helper()
	folder, err := os.MkdirTemp("", "roced-chaos") // not t.TempDir: other users need access to the socket
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(folder)) })
	check(t, os.Chmod(folder, 0o711))
	check(t, os.Mkdir(filepath.Join(folder, "state"), 0o700))
	h := &host{Namespace: ns, name: name, network: network, folder: folder, cidrs: cidrs}
	if network == "udp" {
		workers = 1 // the maximum over UDP sockets
	}
	text := fmt.Sprintf("state_dir = %q\nsocket.path = %q\nsocket.mode = \"0666\"\n%s[[device]]\ninterface = \"eth0\"\nnetwork = %q\nworkers = %d\n", h.path("state"), h.socket(), limits, network, workers)
	check(t, os.WriteFile(h.path("roced.toml"), []byte(text), 0o600))
	h.start(t)
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			t.Logf("end of the log of the service on %s:\n%s", h.name, h.said(8000))
		}
	})
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.folder, name) }
func (h *host) socket() string          { return h.path("roced.sock") }

// start starts the service.
func (h *host) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(h.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(t, err)
	defer log.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.service = self("run", "--config", h.path("roced.toml"))
	h.service.Env = append(h.service.Env, stacksVariable+"="+h.path("stacks"))
	h.service.Stderr = log
	check(t, h.Do(h.service.Start))
}

// await waits until the service has its device.
func (h *host) await(t testing.TB) {
	t.Helper()
	eventually(t, "the service on "+h.name+" has a device", func() bool {
		c, err := client.Dial(h.socket(), "eth0")
		if err != nil {
			return false
		}
		check(t, c.Close())
		return true
	})
}

// listens waits until the service responds, with or without a device.
func (h *host) listens(t testing.TB) {
	t.Helper()
	eventually(t, "the service on "+h.name+" responds", func() bool {
		_, err := client.Devices(h.socket())
		return err == nil
	})
}

// marker is an address that a host has only during catchUp.
const marker = "10.77.9.1/32"

// catchUp waits until the service has read every earlier change of the host. It adds an address and removes it again:
// the service reads the removal after it has read the addition, and reads all state each time.
func (h *host) catchUp(t testing.TB) {
	t.Helper()
	link, err := h.eth0()
	check(t, err)
	address, err := netlink.ParseAddr(marker)
	check(t, err)
	check(t, h.Netlink().AddrAdd(link, address))
	h.awaitMarker(t, true)
	check(t, h.Netlink().AddrDel(link, address))
	h.awaitMarker(t, false)
}

// awaitMarker waits until the marker is in the device's GID table, or no longer is.
func (h *host) awaitMarker(t testing.TB, present bool) {
	t.Helper()
	gid := verbs.GIDFromAddr(netip.MustParsePrefix(marker).Addr())
	eventually(t, "the service on "+h.name+" has read the host's changes", func() bool {
		var c *verbs.Context
		d, err := client.Dial(h.socket(), "eth0")
		if err == nil {
			c, err = verbs.Open(d)
		}
		if err != nil {
			return false
		}
		_, _, err = kernel.FindGID(c, gid)
		check(t, c.Close())
		return (err == nil) == present
	})
}

func (h *host) pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.service.Process.Pid
}

// signal sends the service a signal, if it runs.
func (h *host) signal(s unix.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service != nil {
		_ = h.service.Process.Signal(s)
	}
}

// kill kills the service (SIGKILL).
func (h *host) kill() {
	h.signal(unix.SIGKILL)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.service != nil {
		_ = h.service.Wait()
		h.service = nil
	}
}

// terminate ends the service as systemd does, and checks that it exits with 0.
func (h *host) terminate(t testing.TB) {
	t.Helper()
	h.signal(unix.SIGTERM)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.service.Wait(); err != nil {
		t.Errorf("the service on %s: %v", h.name, err)
	}
	h.service = nil
}

// stacks returns the stacks of the service's goroutines.
func (h *host) stacks(t testing.TB) string {
	t.Helper()
	_ = os.Remove(h.path("stacks"))
	h.signal(unix.SIGUSR1)
	var text []byte
	eventually(t, "goroutines of the service", func() (is bool) {
		var err error
		text, err = os.ReadFile(h.path("stacks"))
		return err == nil
	})
	return string(text)
}

// said returns the end of the service's log, and the cause of a crash.
func (h *host) said(length int) string {
	text, _ := os.ReadFile(h.path("log"))
	said := string(text[max(0, len(text)-length):])
	if at := crashed.FindIndex(text); at != nil {
		said += "\n\nCrash:\n" + string(text[at[0]:min(len(text), at[0]+length)])
	}
	return strings.TrimSpace(said)
}

// crashed matches the first line that Go prints when a process crashes.
var crashed = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault address|WARNING: DATA RACE|SIG[A-Z]+: )`)

// pause sleeps for a random time up to longest.
func pause(r *rand.Rand, longest time.Duration) { time.Sleep(time.Duration(r.Int64N(int64(longest)))) }
