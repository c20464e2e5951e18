// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/vishvananda/netlink"
)

var check = errtest.Check

// recorder records changes, each once.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (h *recorder) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(h.list, text) {
		h.list = append(h.list, text)
	}
}

func (h *recorder) Port()                       { h.note("port") }
func (h *recorder) Routes()                     { h.note("routes") }
func (h *recorder) Missed()                     { h.note("missed") }
func (h *recorder) Route(p netip.Prefix, t int) { h.note("route %v table %d", p, t) }
func (h *recorder) Neighbour(a netip.Addr)      { h.note("neighbour %v", a) }

// all returns the changes received so far.
func (h *recorder) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// forget clears the received changes.
func (h *recorder) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = nil
}

// until waits until a change is recorded.
func (h *recorder) until(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(waittest.Limit); !slices.Contains(h.all(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %q; got %q", text, h.all())
		}
	}
}

func index(t testing.TB, ns *lab.Namespace, name string) int {
	t.Helper()
	n, err := ns.Index(name)
	check(t, err)
	return n
}

// follow subscribes to changes of an interface of a host, and clears the initial Missed.
func follow(t *testing.T, ns *lab.Namespace, name string) (*Subscription, *recorder) {
	t.Helper()
	var s *Subscription
	check(t, ns.Do(func() (err error) { s, err = Follow(index(t, ns, name)); return err }))
	t.Cleanup(s.Close)
	h := &recorder{}
	s.Tell(h)
	h.until(t, "missed")
	h.forget()
	return s, h
}

func queries(t *testing.T, ns *lab.Namespace) *Queries {
	t.Helper()
	var q *Queries
	check(t, ns.Do(func() (err error) { q, err = OpenQueries(index(t, ns, "eth0")); return err }))
	t.Cleanup(q.Close)
	return q
}

// twoHosts returns the first of a pair of hosts, with an additional interface.
func twoHosts(t *testing.T) *lab.Namespace {
	t.Helper()
	hosts := labtest.Pair(t)
	check(t, hosts.A.Netlink().LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth2"}))
	return hosts.A
}

// TestAddressesAreNotInterrupted: changes of other interfaces do not interrupt the listing of an interface's addresses.
func TestAddressesAreNotInterrupted(t *testing.T) {
	ns := twoHosts(t)
	q := queries(t, ns)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = ns.AddAddress("eth1", fmt.Sprintf("10.66.%d.%d/24", i/200%200, i%200+1))
			}
		}
	}()
	for range 500 {
		list, err := q.Addresses()
		check(t, err)
		if !slices.ContainsFunc(list, func(a Address) bool { return a.IP == netip.MustParseAddr("10.77.0.1") && a.Prefix == 24 && a.Usable() }) {
			t.Fatalf("addresses %v", list)
		}
	}
	close(stop)
	<-done
}
