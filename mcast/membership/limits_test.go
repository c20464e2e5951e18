// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// nth4 and nth6 return different groups for different numbers.
func nth4(i int) netip.Addr { return netip.AddrFrom4([4]byte{239, 5, byte(i >> 8), byte(i)}) }

func nth6(i int) netip.Addr {
	a := netip.MustParseAddr("ff05::5:0").As16()
	a[14], a[15] = byte(i>>8), byte(i)
	return netip.AddrFrom16(a)
}

// TestThousandGroups: a thousand groups can be joined with the kernel's default limits.
func TestThousandGroups(t *testing.T) {
	const n = 1000
	rows := []struct {
		name   string
		via    Method
		nth    func(int) netip.Addr
		raised bool // igmp_max_memberships is raised
	}{
		{"auto IPv4", Auto, nth4, false}, {"socket IPv4", Socket, nth4, false}, {"socket IPv6", Socket, nth6, false},
		{"netlink, its limit raised", Netlink, nth4, true}, {"auto, its limit raised", Auto, nth4, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			host, n := pair(t).A, n
			if row.via == Netlink {
				n = min(n, mostByMemory(t, host))
			}
			bare := bareJoins(t, host.Do, eth0(t, host).Attrs().Index, n, row.nth)
			if row.raised {
				sysctl(t, host, "ipv4/igmp_max_memberships", "2000")
			}
			before := labtest.Descriptors()
			m := open(t, host, row.via)
			start := time.Now()
			for i := range n {
				check(t, m.Join(row.nth(i)))
			}
			joined := time.Since(start)
			there := members(t, host)
			for i := range n {
				if !there[row.nth(i)] {
					t.Fatalf("not a member of %v", row.nth(i))
				}
			}
			start = time.Now()
			check(t, m.Close())
			t.Logf("%d joins in %v, leaves in %v; joins by plain sockets in %v", n, joined, time.Since(start), bare)
			eventually(t, "leave of all", func() bool { return !isMember(t, host, row.nth(0)) && !isMember(t, host, row.nth(n-1)) })
			if leaked := labtest.Leaked(before, labtest.Descriptors()); len(leaked) != 0 {
				t.Errorf("leaked: %v", leaked)
			}
		})
	}
}

// TestAutojoinMemory: if the kernel's socket for autojoin has memory for fewer groups than
// net.ipv4.igmp_max_memberships allows, the error states it.
func TestAutojoinMemory(t *testing.T) {
	host := pair(t).A
	_ = host.Do(func() error { return os.WriteFile(optmemLimit, []byte("5000"), 0) }) // faster, if it is permitted
	n := mostByMemory(t, host)
	sysctl(t, host, "ipv4/igmp_max_memberships", strconv.Itoa(n+1))
	m := open(t, host, Netlink)
	for i := range n {
		check(t, m.Join(nth4(i)))
	}
	refused(t, m.Join(nth4(n)), unix.ENOBUFS, "net.core.optmem_max", "48", "socket")
}

// optmemLimit exists in each namespace since Linux 6.8, before that only in the initial one.
const optmemLimit = "/proc/sys/net/core/optmem_max"

// mostByMemory returns the number of groups for which the kernel's autojoin socket of a host has memory.
func mostByMemory(t *testing.T, host *lab.Namespace) int {
	t.Helper()
	var text []byte
	read := func() (err error) { text, err = os.ReadFile(optmemLimit); return err }
	if host.Do(read) != nil {
		check(t, read())
	}
	bytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
	check(t, err)
	return bytes / groupMemory
}

// bareJoins returns the time in which plain sockets join n groups.
func bareJoins(t *testing.T, inside func(func() error) error, index, n int, nth func(int) netip.Addr) time.Duration {
	t.Helper()
	var sockets []int
	defer func() {
		for _, fd := range sockets {
			unix.Close(fd)
		}
	}()
	start := time.Now()
	check(t, inside(func() error {
		for i := range n {
			family := unix.AF_INET6
			if nth(i).Is4() {
				family = unix.AF_INET
			}
			fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sockets = append(sockets, fd)
			if err := addMembership(fd, index, nth(i)); err != nil {
				return err
			}
		}
		return nil
	}))
	return time.Since(start)
}

// TestAutojoinLimit: addresses with autojoin share one kernel socket, which holds 20 groups.
func TestAutojoinLimit(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Netlink)
	for i := range 20 {
		check(t, m.Join(nth4(i)))
	}
	refused(t, m.Join(nth4(20)), unix.ENOBUFS, "239.5.0.20", "eth0", "net.ipv4.igmp_max_memberships", "now 20", "socket")
	if len(groupAddresses(t, host, nth4(20))) != 0 || len(m.List()) != 20 {
		t.Error("a failed join left an address or a membership behind")
	}
	check(t, m.Leave(nth4(0)))
	check(t, m.Join(nth4(20)))

	auto := open(t, host, Auto)
	check(t, auto.Join(nth4(21)))
	only(t, auto, Joined{nth4(21), 1, Socket, false})
	sysctl(t, host, "ipv4/igmp_max_memberships", "21")
	check(t, m.Join(nth4(22)))
}

// TestFileLimit: a process at its descriptor limit gets an error with the cause, and keeps its
// memberships.
func TestFileLimit(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Socket)
	check(t, m.Join(nth4(0)))
	var limit unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	fd, err := unix.Dup(0) // the lowest free descriptor
	check(t, err)
	check(t, unix.Close(fd))
	low := unix.Rlimit{Cur: uint64(fd), Max: limit.Max}
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	err = m.Join(nth4(1))
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	refused(t, err, unix.EMFILE, "RLIMIT_NOFILE", "LimitNOFILE=")
	check(t, m.Join(nth4(0)))
	check(t, m.Join(nth4(1)))
	if !isMember(t, host, nth4(0)) || !isMember(t, host, nth4(1)) {
		t.Error("not a member")
	}
}
