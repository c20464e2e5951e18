// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// warnOfConflicts logs conditions on the host that can prevent packets from reaching the card: VLAN offload, an RDMA
// device on the same interface, another interface in the same subnet. Failed queries are ignored.
func (b *builder) warnOfConflicts() error {
	log := b.config.Log.With("device", b.name)
	if b.vlan != 0 && stripsTags(b.base.Attrs().Name) {
		log.Warn("the NIC may remove VLAN tags from frames before XDP sees them, and then no packets arrive at the device; "+
			"ethtool -K DEV rxvlan off (on a veth: txvlan off at the sending end)", "DEV", b.base.Attrs().Name)
	}
	if showsLink(os.DirFS("/sys"), b.base.Attrs()) {
		for _, device := range rdmaDevices(os.DirFS("/sys"), b.base.Attrs().Name) {
			log.Warn("another RDMA device is on the same interface: only one of the two receives RoCEv2 packets for the interface's addresses; remove one", "rdma", device)
		}
	}
	if list, err := b.netlink.AddrList(nil, netlink.FAMILY_V4); err == nil {
		for _, other := range sharedSubnets(list, b.link.Attrs().Index) {
			b.warnOfARP(other)
		}
		if name := host.LowerAnsweringARP(b.link, b.netlink.LinkByIndex); name != "" {
			log.Warn("the interface below also answers ARP for this interface's addresses; packets sent to its MAC do not arrive at the device", "lower", name, "cure", host.ARPRemedy(name))
		}
	}
	return nil
}

// checkPort returns an error if a card over UDP sockets uses the interface: it would lose its packets without notice.
// Soft-RoCE binds the port at all addresses; warnOfConflicts reports it if necessary.
func (b *builder) checkPort() error { return host.Insist(unix.EBUSY, b.tryPort) }

func (b *builder) tryPort() error {
	holders := host.PortHolders(wire.UDPPort)
	if len(holders) == 0 {
		return nil
	}
	own, err := b.netlink.AddrList(b.link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", b.name, err)
	}
	own = slices.DeleteFunc(own, func(a netlink.Addr) bool { return a.IP.IsMulticast() }) // groups' addresses, at which several programs may use the port
	for _, h := range holders {
		if slices.ContainsFunc(own, func(a netlink.Addr) bool { return a.IP.Equal(h.Address.AsSlice()) }) {
			return fmt.Errorf("%w: %v uses RoCEv2's port (UDP %d) of %v, and would get no more packets; close that first", unix.EBUSY, h, wire.UDPPort, h.Address)
		}
	}
	return nil
}

// stripsTags queries the driver for rxvlan.
func stripsTags(name string) bool {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return false
	}
	defer tool.Close()
	features, err := tool.Features(name)
	return err == nil && features["rx-vlan-hw-parse"]
}

// showsLink reports whether a sysfs has an interface with that name, index and MAC. The sysfs may belong to another
// network namespace.
func showsLink(sys fs.FS, link *netlink.LinkAttrs) bool {
	directory := filepath.Join("class/net", link.Name)
	return readLine(sys, filepath.Join(directory, "ifindex")) == strconv.Itoa(link.Index) &&
		readLine(sys, filepath.Join(directory, "address")) == link.HardwareAddr.String()
}

// rdmaDevices returns the RDMA devices (NICs, rdma_rxe, siw) on an interface.
func rdmaDevices(sys fs.FS, name string) (devices []string) {
	const root = "class/infiniband"
	all, _ := fs.ReadDir(sys, root)
	for _, device := range all {
		ports, _ := fs.ReadDir(sys, filepath.Join(root, device.Name(), "ports"))
		for _, port := range ports {
			if readLine(sys, filepath.Join(root, device.Name(), "ports", port.Name(), "gid_attrs/ndevs/0")) == name {
				devices = append(devices, device.Name())
				break
			}
		}
	}
	return devices
}

func readLine(sys fs.FS, name string) string {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// sibling is another interface in a subnet of the card's interface.
type sibling struct {
	index  int
	subnet netip.Prefix
}

// sharedSubnets returns the other interfaces with an address in a subnet of the given one.
func sharedSubnets(list []netlink.Addr, index int) (found []sibling) {
	seen := map[int]bool{index: true}
	for _, own := range list {
		subnet, ok := subnetOf(own)
		if own.LinkIndex != index || !ok {
			continue
		}
		for _, other := range list {
			if theirs, ok := subnetOf(other); ok && theirs.Overlaps(subnet) && !seen[other.LinkIndex] {
				seen[other.LinkIndex] = true
				found = append(found, sibling{other.LinkIndex, subnet})
			}
		}
	}
	return found
}

// subnetOf returns the subnet of an address; ok is false for a /32, a /0, and loopback and groups' addresses.
func subnetOf(a netlink.Addr) (netip.Prefix, bool) {
	ip, ok := netip.AddrFromSlice(a.IP.To4())
	if !ok || a.Mask == nil {
		return netip.Prefix{}, false
	}
	ones, _ := a.Mask.Size()
	subnet, err := ip.Prefix(ones)
	return subnet, err == nil && ones > 0 && ones < 32 && !ip.IsLoopback() && !ip.IsMulticast()
}

// warnOfARP warns unless the other interface answers ARP only for its own addresses.
func (b *builder) warnOfARP(other sibling) {
	link, err := b.netlink.LinkByIndex(other.index)
	if err != nil || host.IgnoresARP(link.Attrs().Name) {
		return
	}
	name := link.Attrs().Name
	b.config.Log.Warn("two interfaces are in one subnet: the other also answers ARP for this one's addresses, and packets sent to its MAC do not arrive at the device",
		"device", b.name, "other", name, "subnet", other.subnet, "cure", host.ARPRemedy(name))
}
