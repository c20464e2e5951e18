// Package netdev carries a host's IP packets over a card: the kernel's rdma_netdev, as IPoIB has it. An interface of
// the host (TUN), or another source of IP packets, is joined to a queue pair, whose datagrams and groups carry them.
//
//	dev, err := netdev.Alloc(c, 1, "roce%d", netdev.Options{})   // c: a verbs.Context; needs CAP_NET_ADMIN
//	dev.SetID(7)                                                 // which of 65536 networks; 0 if not called
//	err = dev.Init(ctx)                                          // queue pair, group, interface up
//	err = dev.Run(ctx)                                           // carries packets until ctx is done
//	err = dev.Close()
//
//	kernel ──► Interface ──► outward ──► neighbours: IP to queue pair ──► pieces ──► ud.Endpoint ──► card
//	kernel ◄── Interface ◄── checks ◄─── inward ◄── reassembly ◄───────── pieces ◄── ud.Endpoint ◄── card
//	                                        └─ resolution: asks, answers, announcements
//
// # On the wire
//
// In front of each packet are the 4 bytes of RFC 4391: EtherType (0x0800, 0x86dd or 0x0806), then 2 that are zero there.
// IPv6 needs an MTU of 1280, and a datagram may have 1024 bytes. So a packet may travel in up to 16 pieces, in
// order, and those 2 bytes say which (frame.go). The interface's MTU is what one datagram takes, but 1280 at least;
// both ends should have the same Options.MTU if it is set.
//
// Multicast and broadcast travel in the network's group, to all its devices. For other destinations the group is
// asked who has the address: an ARP request (RFC 826) without hardware addresses, for IPv4 and IPv6, since a TUN
// interface has no neighbour discovery of its own. The datagram's source is the place, so that nobody can claim an
// address for a place that is not his own. Only who is asked for is kept: foreign packets fill no table. An answer
// is good for 30 s, then asked for again. A device announces its addresses when it starts, and when they change:
// so peers find one that was started again, with another queue pair, at once.
//
// # What is trusted
//
// As on an Ethernet, who can send to the group can claim any IP address. Packets that are not IP, whose lengths do
// not fit, that claim an address of this host, or that are for one host and came in the group, are dropped, each
// with a reason (drops.go, Device.Stats). The rest is for the host's firewall.
//
// The interface is not persistent: it is gone with the process, whatever ends that.
//
// Left out: segmentation offload; groups of their own for IP groups, other than by AttachMcast.
package netdev
