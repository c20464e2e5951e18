// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// readyTimeout is the time limit for a link to become ready, which takes milliseconds, or seconds for a
// network card.
const readyTimeout = 30 * time.Second

// minIPv6MTU is the smallest MTU of a link that carries IPv6, in bytes (RFC 8200, section 5).
const minIPv6MTU = 1280

// Index returns the interface index of a link.
func (ns *Namespace) Index(ifname string) (int, error) {
	link, err := ns.nl.LinkByName(ifname)
	if err != nil {
		return 0, fmt.Errorf("link %s in %s: %w", ifname, ns.name, err)
	}
	return link.Attrs().Index, nil
}

// AddAddress adds an address such as "10.77.0.1/24" or "fd77::1/64" to a link. It can be used immediately.
func (ns *Namespace) AddAddress(ifname, cidr string) error {
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		return fmt.Errorf("address %q: %w", cidr, err)
	}
	if address.IP.To4() == nil {
		address.Flags = unix.IFA_F_NODAD
	}
	link, err := ns.nl.LinkByName(ifname)
	if err == nil {
		err = ns.nl.AddrAdd(link, address)
	}
	if err != nil {
		return fmt.Errorf("add %s to %s in %s: %w", cidr, ifname, ns.name, err)
	}
	return nil
}

// CutTrains makes the kernel segment trains before they reach a link, so that each frame on the link is one
// packet.
func (ns *Namespace) CutTrains(ifname string) error {
	link, err := ns.nl.LinkByName(ifname)
	if err == nil {
		err = ns.nl.LinkSetGSOMaxSegs(link, 1)
	}
	if err != nil {
		return fmt.Errorf("cut trains on %s in %s: %w", ifname, ns.name, err)
	}
	return nil
}

func (ns *Namespace) bringUp(ifname string) error {
	link, err := ns.nl.LinkByName(ifname)
	if err == nil {
		err = ns.nl.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("bring up %s in %s: %w", ifname, ns.name, err)
	}
	return nil
}

// waitReady returns when the link has a carrier and a usable link-local address.
func (ns *Namespace) waitReady(ifname string) error {
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(time.Millisecond) {
		ready, err := ns.ready(ifname)
		if errors.Is(err, netlink.ErrDumpInterrupted) { // changed meanwhile
			ready, err = false, nil
		}
		if err == nil && !ready && time.Now().After(deadline) {
			err = unix.ETIMEDOUT
		}
		if err != nil {
			return fmt.Errorf("wait for %s in %s: %w", ifname, ns.name, err)
		}
		if ready {
			return nil
		}
	}
}

func (ns *Namespace) ready(ifname string) (bool, error) {
	link, err := ns.nl.LinkByName(ifname)
	if err != nil || link.Attrs().OperState != netlink.OperUp {
		return false, err
	}
	if link.Attrs().MTU < minIPv6MTU {
		return true, nil
	}
	addresses, err := ns.nl.AddrList(link, netlink.FAMILY_V6)
	for _, address := range addresses {
		if address.IP.IsLinkLocalUnicast() && address.Flags&unix.IFA_F_TENTATIVE == 0 {
			return true, nil
		}
	}
	return false, err
}
