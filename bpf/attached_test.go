// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab/labtest"
)

// TestHeldByALink checks that the error names the program and its process, in all combinations of modes.
func TestHeldByALink(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, test := range []struct{ first, second Mode }{
		{Native, Native}, {Generic, Generic}, {Generic, Native}, {Native, Generic}, {Generic, Auto}, {Native, Auto},
	} {
		t.Run(fmt.Sprintf("%s, then %s", test.first, test.second), func(t *testing.T) {
			first, second := load(t, Config{}), load(t, Config{})
			must(t, attachIn(hosts.A, first, "eth0", test.first))
			err := attachIn(hosts.A, second, "eth0", test.second)
			isAttached(t, err,
				fmt.Sprintf("program id %d (roced_steer) on eth0", programID(t, first.objs.RocedSteer)),
				fmt.Sprintf("a program of roced, held by process %d (bpf.test)", os.Getpid()),
				"ip link add link eth0 name NAME type macvlan mode bridge")
			if text := err.Error(); strings.Contains(text, "detach") || strings.Contains(text, "xdp off") {
				t.Errorf("%q suggests removing a program that is in use", text)
			}
			must(t, errors.Join(first.Close(), second.Close()))
		})
	}
}

// TestHeldByAnothersLink checks that the error suggests detaching a program that is not roced's.
func TestHeldByAnothersLink(t *testing.T) {
	hosts := labtest.Pair(t)
	other, s := passAll(t), load(t, Config{})
	var held link.Link
	must(t, hosts.A.Do(func() (err error) {
		device, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		held, err = link.AttachXDP(link.XDPOptions{Program: other, Interface: device.Attrs().Index})
		return err
	}))
	defer held.Close()
	info, err := held.Info()
	must(t, err)
	isAttached(t, attachIn(hosts.A, s, "eth0", Auto), "(pass_all) on eth0",
		fmt.Sprintf("through bpf_link %d by process %d (bpf.test)", info.ID, os.Getpid()),
		fmt.Sprintf("bpftool link detach id %d", info.ID))
}

// TestDetached checks that Check detects that another process has detached the program.
func TestDetached(t *testing.T) {
	hosts := labtest.Pair(t)
	for name, take := range map[string]func(l link.Link) error{
		"detached": func(l link.Link) error { return l.Detach() },
		"replaced": func(l link.Link) error { return l.Update(load(t, Config{}).objs.RocedSteer) },
	} {
		s := load(t, Config{})
		must(t, s.Check())
		must(t, attachIn(hosts.A, s, "eth0", Auto))
		must(t, s.Check())
		must(t, take(s.link))
		if err := s.Check(); !errors.Is(err, ErrDetached) || !errors.Is(err, unix.ENOLINK) {
			t.Errorf("%s: %v, want %v", name, err, ErrDetached)
		}
		must(t, s.Close())
	}
}

// TestWhoIsRoced checks that isRoced compares the name or, without a name, the tag.
func TestWhoIsRoced(t *testing.T) {
	for _, row := range []struct {
		program string
		holders []holder
		want    bool
	}{
		{"roced_steer", nil, true}, {"pass_all", nil, false}, {"", nil, false},
		{"", []holder{{tag: "ab"}}, false}, {"", []holder{{tag: "ab"}, {tag: "cd"}}, true}, {"pass_all", []holder{{tag: "cd"}}, false},
	} {
		if got := isRoced(row.program, "cd", row.holders); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

// TestHeldWithoutALink attaches another program as `ip link` does.
func TestHeldWithoutALink(t *testing.T) {
	hosts := labtest.Pair(t)
	other := passAll(t)
	s := load(t, Config{})
	link, err := hosts.A.Netlink().LinkByName("eth0")
	must(t, err)
	must(t, hosts.A.Do(func() error { return netlink.LinkSetXdpFd(link, other.FD()) }))
	isAttached(t, attachIn(hosts.A, s, "eth0", Auto),
		fmt.Sprintf("program id %d (pass_all) on eth0", programID(t, other)),
		"`ip link set dev eth0 xdp off`")
	must(t, hosts.A.Do(func() error { return netlink.LinkSetXdpFd(link, -1) }))
	must(t, attachIn(hosts.A, s, "eth0", Auto))
}

func isAttached(t *testing.T, err error, says ...string) {
	t.Helper()
	if !errors.Is(err, ErrAttached) || !errors.Is(err, unix.EBUSY) {
		t.Fatalf("%v, want %v", err, ErrAttached)
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

// TestHolders checks that findHolders returns the process, its command and the program's tag.
func TestHolders(t *testing.T) {
	hosts := labtest.Pair(t)
	s := load(t, Config{})
	must(t, attachIn(hosts.A, s, "eth0", Auto))
	holders := findHolders(s.program)
	if len(holders) != 1 || holders[0] != (holder{pid: os.Getpid(), command: "bpf.test", tag: s.tag()}) || s.tag() == "" {
		t.Errorf("%+v, want this process and %q", holders, s.tag())
	}
	if others := findHolders(1 << 30); others != nil {
		t.Errorf("holders of another program: %+v", others)
	}
}
