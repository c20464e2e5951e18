package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/netlab"
	"golang.org/x/sys/unix"
)

// watch sees everything that passes a port of the demo's switch, by an AF_PACKET
// socket (packet(7)) beside it. It belongs to one goroutine, which must look before
// the socket is full: some 200 frames.
type watch struct {
	fd     int
	frame  []byte
	packet wire.Packet
	groups map[netip.Addr]*traffic
}

// traffic is what passed a port for one group.
type traffic struct {
	messages int    // RoCEv2 datagrams to the group, either way
	reports  int    // from the host: it is a member
	leaves   int    // from the host: it is no longer
	protocol string // of the last report or leave
}

// newWatch watches a port, which is in the namespace.
func newWatch(ns *netlab.Namespace, port string) (*watch, error) {
	w := &watch{fd: -1, frame: make([]byte, 1<<16), groups: map[netip.Addr]*traffic{}}
	index, err := ns.Index(port)
	if err != nil {
		return nil, err
	}
	if err := ns.Do(func() error { return w.open(index) }); err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", port, err), w.Close())
	}
	return w, nil
}

// open runs inside. The socket takes no protocol, so nothing, until it is bound to
// the port.
func (w *watch) open(index int) (err error) {
	w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
	return unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index})
}

// Close ends the watch.
func (w *watch) Close() error {
	if w.fd < 0 {
		return nil
	}
	fd := w.fd
	w.fd = -1
	return unix.Close(fd)
}

// of is a group's traffic.
func (w *watch) of(group netip.Addr) *traffic {
	t := w.groups[group]
	if t == nil {
		t = new(traffic)
		w.groups[group] = t
	}
	return t
}

// look counts what has passed since the last look.
func (w *watch) look() error {
	for {
		n, from, err := unix.Recvfrom(w.fd, w.frame, 0)
		if errors.Is(err, unix.EAGAIN) {
			return w.complete()
		}
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		w.count(w.frame[:n], ok && link.Pkttype == unix.PACKET_OUTGOING)
	}
}

// count takes a frame that the switch got from the host, or sent to it.
func (w *watch) count(frame []byte, toHost bool) {
	if wire.Parse(frame, &w.packet) == wire.FaultNone {
		w.of(w.packet.Destination().Addr()).messages++
	}
	if toHost {
		return
	}
	for _, m := range membershipMessages(frame) {
		t := w.of(m.group)
		t.protocol = m.protocol
		if m.leave {
			t.leaves++
		} else {
			t.reports++
		}
	}
}

// complete insists that the socket has lost nothing.
func (w *watch) complete() error {
	stats, err := unix.GetsockoptTpacketStats(w.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && stats.Drops > 0 {
		err = fmt.Errorf("%d frames were not seen: %w", stats.Drops, unix.ENOBUFS)
	}
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}
