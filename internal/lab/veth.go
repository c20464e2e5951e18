// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net"

	"github.com/roced/roced/internal/kernel"
	"github.com/vishvananda/netlink"
)

// VethOption is an option of Veth.
type VethOption func(*netlink.Veth)

// WithMTU sets the MTU of both ends, in bytes.
func WithMTU(mtu int) VethOption {
	return func(v *netlink.Veth) {
		v.MTU, v.PeerMTU = mtu, uint32(mtu)
	}
}

// WithQueues gives each end n receive and n transmit queues.
func WithQueues(n int) VethOption {
	return func(v *netlink.Veth) {
		v.NumRxQueues, v.PeerNumRxQueues = n, uint32(n)
		v.NumTxQueues, v.PeerNumTxQueues = n, uint32(n)
	}
}

// WithMACs sets the Ethernet addresses, which are random by default.
func WithMACs(a, b net.HardwareAddr) VethOption {
	return func(v *netlink.Veth) {
		v.HardwareAddr, v.PeerHardwareAddr = a, b
	}
}

// Veth connects two namespaces by a veth pair, and returns when both ends are up and have a carrier
// and a link-local address.
func Veth(a, b *Namespace, nameA, nameB string, options ...VethOption) error {
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.PeerName = nameA, nameB
	veth.PeerNamespace = netlink.NsFd(b.FD())
	for _, option := range options {
		option(veth)
	}
	if err := a.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth %s in %s, %s in %s: %w", nameA, a.name, nameB, b.name, kernel.ExplainModule(err, "veth"))
	}
	if err := start(a, b, nameA, nameB); err != nil {
		return errors.Join(err, a.nl.LinkDel(veth))
	}
	return nil
}

func start(a, b *Namespace, nameA, nameB string) error {
	if err := a.bringUp(nameA); err != nil {
		return err
	}
	if err := b.bringUp(nameB); err != nil {
		return err
	}
	if err := a.waitReady(nameA); err != nil {
		return err
	}
	return b.waitReady(nameB)
}
