// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/nic"
	"golang.org/x/sys/unix"
)

// XDP and UDP sockets exclude each other on an interface: the first card keeps its packets, and the error names it.
func TestWaysExcludeEachOther(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	in := InNamespace(hosts.A.Path())
	xdp, err := Open("eth0", in, WithNetwork(NetworkXDP))
	check(t, err)
	_, err = Open("eth0", in, WithNetwork(NetworkUDP))
	refused(t, err, unix.EBUSY, "by XDP", "roced_steer", "open eth0")
	check(t, xdp.Close())
	udp, err := Open("eth0", in, WithNetwork(NetworkUDP))
	check(t, err)
	for _, way := range []Network{NetworkXDP, NetworkAuto} {
		_, err = Open("eth0", in, WithNetwork(way))
		refused(t, err, unix.EBUSY, "(process ", "UDP 4791", "10.77.0.1")
	}
	_, err = Open("eth0", in, WithNetwork(NetworkUDP)) // another card of the same process
	refused(t, err, unix.EADDRINUSE, "(process ", "10.77.0.1")
	check(t, udp.Close())
	xdp, err = Open("eth0", in)
	check(t, err)
	check(t, xdp.Close())
}

// Errors for which UDP sockets are the fallback, and errors for which they are not.
func TestWithoutXDP(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		unix.EPERM: true, bpf.ErrPermission: true, verbs.ErrUnsupported: true, xsk.ErrLockedMemory: true, unix.EAFNOSUPPORT: true,
		nic.ErrSlave: false, unix.ENODEV: false, unix.ENETDOWN: false, unix.EBUSY: false, verbs.ErrInvalid: false,
	} {
		if got := withoutXDP(fmt.Errorf("open: %w", err)); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
}
