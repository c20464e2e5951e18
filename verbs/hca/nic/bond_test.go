// SPDX-License-Identifier: Apache-2.0

//go:build vlan

package nic

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addBond creates a bond on a host's eth0.
func addBond(t *testing.T, at *lab.Namespace, number int) {
	t.Helper()
	bond := netlink.NewLinkBond(attrs("bond0", 1500))
	bond.Mode, bond.Miimon = netlink.BOND_MODE_ACTIVE_BACKUP, 10
	nl := at.Netlink()
	eth0, err := nl.LinkByName("eth0")
	check(t, err)
	check(t, nl.LinkAdd(bond))
	check(t, nl.LinkSetDown(eth0))
	check(t, nl.LinkSetMaster(eth0, bond))
	check(t, nl.LinkSetUp(eth0))
	check(t, nl.LinkSetUp(bond))
	check(t, at.AddAddress("bond0", fmt.Sprintf("10.99.0.%d/24", number)))
}

// openNative opens bond0 as if it were a plain interface, with XDP on its slaves.
func openNative(t *testing.T, at *lab.Namespace, s *bpf.Steering) *Interface {
	t.Helper()
	b := &builder{name: "bond0", config: Config{StateDir: t.TempDir()}, multiBuffer: func() (bool, error) { return false, nil }}
	b.config.Log = (&logged{}).logger()
	b.steering = s
	var err error
	b.inside, err = host.Enter(at.Path())
	check(t, err)
	check(t, b.inside.Do(func() (err error) {
		b.tuned = func() error { return nil }
		if b.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		for _, step := range []func() error{b.findLink, func() error { return b.fitMTU(1500) }, b.countQueues, b.listen, b.openJournals,
			func() error { return s.Attach(b.base.Attrs().Index, bpf.Native) }} {
			if err := step(); err != nil {
				return err
			}
		}
		b.queues.count = 1
		if err := b.openSockets(); err != nil {
			return err
		}
		return b.openMemberships()
	}))
	return b.opened()
}

// Packets that forced native XDP on a bond loses are counted.
func TestBondNativeIsCounted(t *testing.T) {
	hosts := labtest.Pair(t)
	addBond(t, hosts.A, 1)
	addBond(t, hosts.B, 2)
	s, err := bpf.Load(bpf.Config{AnyMAC: true})
	check(t, err)
	check(t, s.Uncounted())
	i := openNative(t, hosts.B, s)
	defer i.Close()
	defer i.Link().Close()
	check(t, i.AddAddress(netip.MustParseAddr("10.99.0.2")))
	check(t, i.AddQP(17))
	packet := make([]byte, 12+8+4+4)                                        // BTH, DETH, data, ICRC
	packet[0], packet[2], packet[3], packet[7] = 0x64, 0xFF, 0xFF, byte(17) // UD SEND only, for queue pair 17
	count := func() uint64 {
		c, err := s.Counters()
		check(t, err)
		if c[bpf.Redirected] != 0 {
			t.Fatal("a packet was redirected")
		}
		return c[bpf.DropRedirect]
	}
	check(t, hosts.A.Do(func() error {
		conn, err := net.Dial("udp", "10.99.0.2:4791")
		if err != nil {
			return err
		}
		defer conn.Close()
		for end := time.Now().Add(waittest.Limit); count() < 8; time.Sleep(10 * time.Millisecond) {
			if _, err := conn.Write(packet); err != nil && time.Now().After(end) {
				return err
			}
			if time.Now().After(end) {
				return fmt.Errorf("counted %d", count())
			}
		}
		return nil
	}))
}
