// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tun is an interface of the kernel, in the network namespace of the thread that created it. It is removed with its
// descriptor.
type tun struct {
	name  string
	file  *os.File
	raw   syscall.RawConn
	links *netlink.Handle
	link  netlink.Link
}

// openTUN creates a TUN with addresses. The name may contain a %d; the default is roce%d.
func openTUN(name string, addresses []netip.Prefix) (Interface, error) {
	if name == "" {
		name = "roce%d"
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, fmt.Errorf("%w: the interface name exceeds 15 bytes", verbs.ErrInvalid)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w; %s", err, tunNeeds(err))
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("create a TUN: %w; it needs CAP_NET_ADMIN and an unused name", err), unix.Close(fd))
	}
	t := &tun{name: request.Name(), file: os.NewFile(uintptr(fd), "/dev/net/tun")}
	err = t.look()
	for _, a := range addresses {
		if err == nil {
			err = t.address(a)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("TUN %s: %w", t.name, err), t.Close())
	}
	return t, nil
}

// tunNeeds returns the missing requirement for opening the device.
func tunNeeds(err error) string {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return "it needs CAP_NET_ADMIN and permission to open that file"
	}
	return "it needs the kernel's module tun"
}

// look opens the netlink socket and other sources of interface state.
func (t *tun) look() (err error) {
	if t.raw, err = t.file.SyscallConn(); err != nil {
		return err
	}
	if t.links, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	t.link, err = t.links.LinkByName(t.name)
	return err
}

func (t *tun) address(p netip.Prefix) error {
	network := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
	if err := t.links.AddrAdd(t.link, &netlink.Addr{IPNet: network}); err != nil {
		return fmt.Errorf("address %v: %w", p, err)
	}
	return nil
}

func (t *tun) Name() string { return t.name }

// ReadPackets reads the available packets, one per buffer.
func (t *tun) ReadPackets(buffers [][]byte, sizes []int) (n int, err error) {
	var failed error
	err = t.raw.Read(func(fd uintptr) bool {
		for n < len(buffers) {
			size, err := unix.Read(int(fd), buffers[n])
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				if err != unix.EAGAIN {
					failed = err
				}
				return n > 0 || failed != nil
			}
			sizes[n] = size
			n++
		}
		return true
	})
	if n > 0 {
		return n, nil
	}
	return 0, errors.Join(err, failed)
}

func (t *tun) WritePacket(packet []byte) error {
	_, err := t.file.Write(packet)
	return err
}

func (t *tun) Prefixes() (list []netip.Prefix, err error) {
	addresses, err := t.links.AddrList(t.link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", t.name, err)
	}
	for _, a := range addresses {
		ip, _ := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		list = append(list, netip.PrefixFrom(ip.Unmap(), bits))
	}
	return list, nil
}

func (t *tun) NextHop(to netip.Addr) (netip.Addr, error) {
	routes, err := t.links.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{OifIndex: t.link.Attrs().Index})
	if err != nil || len(routes) == 0 {
		return to, fmt.Errorf("route to %v over %s: %w", to, t.name, err)
	}
	if gateway, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		return gateway.Unmap(), nil
	}
	return to, nil
}

func (t *tun) Start(mtu int) error {
	if err := t.links.LinkSetMTU(t.link, mtu); err != nil {
		return fmt.Errorf("MTU %d of %s: %w", mtu, t.name, err)
	}
	return t.links.LinkSetUp(t.link)
}

// Close removes the interface. Closing again has no effect.
func (t *tun) Close() error {
	err := t.file.Close()
	switch {
	case errors.Is(err, os.ErrClosed):
		return nil
	case t.links != nil:
		t.links.Close()
	}
	return err
}
