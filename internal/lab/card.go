// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// parkedMTU is the MTU of a card after it was moved back to the caller's namespace.
const parkedMTU = 1500

// Cards moves two network cards of the caller's namespace to two namespaces and names them nameA and nameB. The cards
// are on the same wire; addresses are their permanent addresses. Cards returns when both are up, as Veth does. Only the
// options for MTU and queues apply.
func Cards(a, b *Namespace, addresses [2]net.HardwareAddr, nameA, nameB string, options ...VethOption) (restore func() error, err error) {
	wanted := netlink.NewVeth(netlink.NewLinkAttrs())
	for _, option := range options {
		option(wanted)
	}
	restore = func() error { return errors.Join(a.restoreCard(addresses[0]), b.restoreCard(addresses[1])) }
	err = errors.Join(a.moveCard(addresses[0], nameA, wanted), b.moveCard(addresses[1], nameB, wanted))
	if err == nil {
		err = start(a, b, nameA, nameB)
	}
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// findCard finds a card by its permanent address.
func findCard(nl *netlink.Handle, address net.HardwareAddr) (netlink.Link, error) {
	links, err := nl.LinkList()
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		if bytes.Equal(link.Attrs().PermHWAddr, address) {
			return link, nil
		}
	}
	return nil, fmt.Errorf("network card %v not found: %w", address, unix.ENODEV)
}

// moveCard moves a card from the caller's namespace into this one.
func (ns *Namespace) moveCard(address net.HardwareAddr, name string, wanted *netlink.Veth) error {
	outside, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer outside.Close()
	link, err := findCard(outside, address)
	if err == nil {
		err = errors.Join(outside.LinkSetDown(link), outside.LinkSetNsFd(link, ns.FD()))
	}
	if err == nil {
		link, err = findCard(ns.nl, address)
	}
	if err != nil {
		return fmt.Errorf("card %v to %s: %w", address, ns.name, err)
	}
	mtu := wanted.MTU
	if mtu == 0 {
		mtu = parkedMTU
	}
	return errors.Join(ns.nl.LinkSetName(link, name), ns.nl.LinkSetMTU(link, mtu), ns.setQueues(name, max(wanted.NumRxQueues, 1)))
}

// setQueues sets the number of queues like ethtool -L NAME combined N.
func (ns *Namespace) setQueues(name string, queues int) error {
	return ns.Do(func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		channels, err := tool.GetChannels(name)
		if err != nil || channels.CombinedCount == uint32(queues) {
			return err
		}
		channels.CombinedCount = uint32(queues)
		if _, err = tool.SetChannels(name, channels); err != nil {
			err = fmt.Errorf("ethtool -L %s combined %d: %w", name, queues, err)
		}
		return err
	})
}

// restoreCard moves a card back and restores its settings.
func (ns *Namespace) restoreCard(address net.HardwareAddr) error {
	link, err := findCard(ns.nl, address)
	if err != nil {
		return err
	}
	// The process's first thread may be in another namespace than the caller.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	callers, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer callers.Close()
	outside := "card" + fmt.Sprintf("%x", []byte(address[3:]))
	return errors.Join(
		ns.nl.LinkSetDown(link), ns.nl.LinkSetHardwareAddr(link, address), ns.nl.LinkSetMTU(link, parkedMTU),
		ns.nl.LinkSetName(link, outside), ns.nl.LinkSetNsFd(link, int(callers.Fd())))
}
