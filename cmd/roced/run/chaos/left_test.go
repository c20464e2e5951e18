// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// numbers matches the parts that distinguish descriptors of the same kind.
var numbers = regexp.MustCompile(`[0-9]+`)

// kindOf returns the kind of a descriptor: its target in /proc, without numbers.
func kindOf(target string) string { return numbers.ReplaceAllString(target, "#") }

// holds counts the resources of a service: descriptors and goroutines.
type holds struct {
	descriptors map[string]int
	goroutines  int
	stacks      string
}

var profiled = regexp.MustCompile(`^goroutine profile: total (\d+)`)

// holds returns the service's resources once they no longer change.
func (h *host) holds(t testing.TB) (now holds) {
	t.Helper()
	const enough = 5
	for same := 0; same < enough; time.Sleep(100 * time.Millisecond) {
		next := h.holdsNow(t)
		if same++; next.goroutines != now.goroutines || !maps.Equal(next.descriptors, now.descriptors) {
			same = 0
		}
		now = next
	}
	return now
}

func (h *host) holdsNow(t testing.TB) (now holds) {
	t.Helper()
	now.stacks = h.stacks(t)
	number := profiled.FindStringSubmatch(now.stacks)
	if number == nil {
		t.Fatalf("no profile: %s", now.stacks)
	}
	now.goroutines, _ = strconv.Atoi(number[1])
	now.descriptors = descriptors(t, h.pid())
	return now
}

// trains is the kind of the socket that sends trains. A device has it only with one worker, so a device with several
// workers gets it when it is reopened on an interface with one queue.
const trains = "socket:[#] PACKET"

// holdsNoMore checks that a service has no more resources than before, after the same use.
func (h *host) holdsNoMore(t testing.TB, before, now holds) {
	t.Helper()
	for kind, n := range now.descriptors {
		most := before.descriptors[kind]
		if kind == trains {
			most = max(most, 1)
		}
		if n > most {
			t.Errorf("the service on %s has %d descriptors %s; earlier it had %d", h.name, n, kind, before.descriptors[kind])
		}
	}
	if now.goroutines > before.goroutines {
		t.Errorf("the service on %s has %d goroutines; earlier it had %d: %s\n%s", h.name, now.goroutines, before.goroutines, before.stacks, now.stacks)
	}
}

// holdsNothing checks that a service holds no resources of programs that have ended.
func (h *host) holdsNothing(t testing.TB) {
	t.Helper()
	eventually(t, "no memory of programs in the service on "+h.name, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", h.pid()))
		check(t, err)
		return !strings.Contains(string(text), "/memfd:roced")
	})
	if n := descriptors(t, h.pid())["/memfd:roced (deleted)"]; n != 0 {
		t.Errorf("the service on %s has %d memfds", h.name, n)
	}
	eventually(t, "no membership on "+h.name, func() bool { return len(h.memberships(t)) == 0 })
}

// memberships returns the groups of this test that the host is a member of, or has as addresses.
func (h *host) memberships(t testing.TB) (groups []string) {
	t.Helper()
	check(t, h.Do(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/igmp")
		for _, field := range strings.Fields(string(text)) {
			if len(field) != 8 {
				continue
			}
			if number, err := strconv.ParseUint(field, 16, 32); err == nil && number&0xff == 239 {
				groups = append(groups, netip.AddrFrom4([4]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)}).String())
			}
		}
		return err
	}))
	list, err := h.Netlink().AddrList(nil, netlink.FAMILY_V4)
	check(t, err)
	for _, a := range list {
		if a.IP.IsMulticast() {
			groups = append(groups, a.IPNet.String())
		}
	}
	return groups
}

// leftNothing checks that a service that has exited normally has restored the host.
func (h *host) leftNothing(t testing.TB) {
	t.Helper()
	link, err := h.Netlink().LinkByName("eth0")
	check(t, err)
	if xdp := link.Attrs().Xdp; xdp != nil && xdp.Attached {
		t.Errorf("the XDP program %d is left on %s", xdp.ProgId, h.name)
	}
	if groups := h.memberships(t); len(groups) > 0 {
		t.Errorf("%s is still a member of %q", h.name, groups)
	}
	if _, err := os.Stat(h.socket()); !os.IsNotExist(err) {
		t.Errorf("the socket of %s is left: %v", h.name, err)
	}
}
