// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// Tap adds a TAP as a port, for a program such as a virtual machine. The TAP remains when the program ends.
// Tap returns the name of the port.
func (b *Bridge) Tap(mtu int) (port string, err error) { return b.TapQueues(mtu, 1) }

// TapQueues is Tap for a program that opens the TAP once per queue.
func (b *Bridge) TapQueues(mtu, queues int) (port string, err error) {
	b.ports++
	port = fmt.Sprintf("port%d", b.ports)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = port
	tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_ONE_QUEUE}
	if queues > 1 {
		tap.Flags = netlink.TUNTAP_MULTI_QUEUE_DEFAULTS
	}
	err = b.Do(func() error { return b.nl.LinkAdd(tap) })
	if err == nil {
		err = b.nl.LinkSetMTU(tap, mtu) // the netlink package's LinkAdd ignores the MTU of a TAP
	}
	if err != nil {
		return "", fmt.Errorf("TAP %s in %s: %w", port, b.Name(), err)
	}
	if err := errors.Join(b.enslave(port), b.bringUp(port)); err != nil {
		return "", err
	}
	return port, nil
}

// enslave makes a link a port of the bridge.
func (b *Bridge) enslave(port string) error {
	link, err := b.nl.LinkByName(port)
	if err == nil {
		err = b.nl.LinkSetMaster(link, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName}})
	}
	if err != nil {
		return fmt.Errorf("port %s of the bridge in %s: %w", port, b.Name(), err)
	}
	return nil
}
