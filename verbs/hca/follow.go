package hca

import (
	"encoding/binary"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// missedPause is how long the follower waits after the kernel had more to say than
// was read, or whatever else ended a read, before it looks at everything again.
const missedPause = 100 * time.Millisecond

// subscribe opens the socket of the kernel's news about the calling thread's
// namespace. It is one, so that the news comes in order.
func subscribe() (*nl.NetlinkSocket, error) {
	return nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
}

// follow implements host.
func (h *kernelHost) follow(stop <-chan struct{}, changed func(), neighbour func(nextHop)) {
	changed() // what came between the first look and now
	for {
		messages, _, err := h.news.Receive()
		if err != nil {
			select {
			case <-stop:
				return
			case <-time.After(missedPause):
				changed()
			}
		}
		h.read(messages, changed, neighbour)
	}
}

// interrupt implements host: a closed socket ends Receive.
func (h *kernelHost) interrupt() { h.news.Close() }

// read looks at news, and at the interface at most once.
func (h *kernelHost) read(messages []syscall.NetlinkMessage, changed func(), neighbour func(nextHop)) {
	look := false
	for _, m := range messages {
		switch m.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR:
			look = look || interfaceOf(m.Data) == h.index
		case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			look = true
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			h.readNeighbour(m, neighbour)
		}
	}
	if look {
		changed()
	}
}

// interfaceOf is the index in ifinfomsg and ifaddrmsg: it is in the same place.
func interfaceOf(data []byte) int {
	if len(data) < 8 {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(data[4:])))
}

// readNeighbour tells of a neighbour. One that was deleted, by whomever, and that is
// in use is asked for anew.
func (h *kernelHost) readNeighbour(m syscall.NetlinkMessage, neighbour func(nextHop)) {
	entry, err := netlink.NeighDeserialize(m.Data)
	if err != nil || entry.LinkIndex != h.index || entry.IP == nil {
		return // another's, or a bridge's forwarding entry
	}
	hop := hopOf(entry)
	if m.Header.Type == unix.RTM_DELNEIGH {
		hop = nextHop{address: hop.address}
		h.renew(hop.address)
	}
	neighbour(hop)
}
