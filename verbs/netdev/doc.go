// SPDX-License-Identifier: Apache-2.0

// Package netdev carries a host's IP packets over a card, like the kernel's rdma_netdev and IPoIB. It connects an
// interface of the host (TUN), or another source of IP packets, to a queue pair, whose datagrams and groups carry the
// packets.
//
//	dev, err := netdev.Alloc(c, 1, "roce%d", netdev.Options{})   // c: a verbs.Context; needs CAP_NET_ADMIN
//	dev.SetID(7)                                                 // one of 65536 networks; default 0
//	err = dev.Init(ctx)                                          // queue pair, group, interface up
//	err = dev.Run(ctx)                                           // carries packets until ctx is done
//	err = dev.Close()
//
//	kernel ──► Interface ──► outward ──► neighbours: IP to queue pair ──► pieces ──► ud.Endpoint ──► card
//	kernel ◄── Interface ◄── checks ◄─── inward ◄── reassembly ◄───────── pieces ◄── ud.Endpoint ◄── card
//	                                        └─ resolution: queries, replies, announcements
//
// # On the wire
//
// Each packet is preceded by the 4 bytes of RFC 4391: EtherType (0x0800, 0x86dd or 0x0806), then 2 bytes that are zero
// there. IPv6 needs an MTU of 1280, and a datagram may be limited to 1024 bytes. Therefore a packet may be sent in up
// to 16 pieces, in order, which those 2 bytes number (frame.go). The interface's MTU is the capacity of one datagram,
// but at least 1280; both ends should use the same Options.MTU if it is set.
//
// Multicast and broadcast are sent to the network's group, and so to all its devices. For other destinations the device
// queries the group for the owner of the address: an ARP request (RFC 826) without hardware addresses, for IPv4 and
// IPv6, since a TUN interface has no neighbour discovery. The source of the reply's datagram is the neighbour's address
// on the card, so a device cannot claim an address for another one. Only requested neighbours are stored, so foreign
// packets cannot fill the table. A reply is valid for 30 s, then the query is repeated. A device announces its
// addresses when it starts, and when they change, so that peers find a restarted device, with another queue pair,
// immediately.
//
// # Security
//
// As on an Ethernet, any host that can send to the group can claim any IP address. Packets are dropped, each with a
// reason (drops.go, Device.Stats), if they are not IP, have inconsistent lengths, claim an address of this host, or are
// unicast packets in the group. The rest is left to the host's firewall.
//
// The interface is not persistent: it is removed with the process.
//
// Not included: segmentation offload; separate groups for IP groups, other than by AttachMcast.
package netdev
