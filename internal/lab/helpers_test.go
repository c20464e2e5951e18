// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
)

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatalf("stat %s: %v", path, err)
	}
	return stat.Ino
}

// inside checks that the thread is in the namespace.
func inside(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	if inode(t, "/proc/thread-self/ns/net") != inode(t, ns.Path()) {
		t.Errorf("thread is not in %s", ns.Name())
	}
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Unmount(to, unix.MNT_DETACH)
		os.Remove(to)
	})
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

func checkLink(t *testing.T, ns *lab.Namespace, name string, mac net.HardwareAddr) {
	t.Helper()
	link, err := ns.Netlink().LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	attrs := link.Attrs()
	if !slices.Equal(attrs.HardwareAddr, mac) || attrs.MTU != 9000 || attrs.OperState != netlink.OperUp {
		t.Errorf("%s: address %s, MTU %d, state %s", name, attrs.HardwareAddr, attrs.MTU, attrs.OperState)
	}
	if attrs.NumRxQueues != 3 || attrs.NumTxQueues != 3 {
		t.Errorf("%s: %d receive and %d transmit queues, want 3", name, attrs.NumRxQueues, attrs.NumTxQueues)
	}
}

func index(t *testing.T, ns *lab.Namespace) int {
	t.Helper()
	index, err := ns.Index("eth0")
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func linkLocal(t *testing.T, ns *lab.Namespace) string {
	t.Helper()
	link, err := ns.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := ns.Netlink().AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if address.IP.IsLinkLocalUnicast() {
			return address.IP.String()
		}
	}
	t.Fatal("no link-local address")
	return ""
}

func listen(t *testing.T, ns *lab.Namespace, address netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// send sends two bytes to a socket on the other host, over the link with the index.
func send(to *net.UDPConn, index int) error {
	domain := unix.AF_INET6
	local := to.LocalAddr().(*net.UDPAddr).AddrPort()
	var target unix.Sockaddr = &unix.SockaddrInet6{
		Addr: local.Addr().As16(), Port: int(local.Port()), ZoneId: uint32(index),
	}
	if local.Addr().Is4() {
		domain = unix.AF_INET
		target = &unix.SockaddrInet4{Addr: local.Addr().As4(), Port: int(local.Port())}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("hi"), 0, target)
}
