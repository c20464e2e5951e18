// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
)

// watch counts the packets at a port of the demo's switch. It belongs to one goroutine, which must call update before
// the socket buffer is full (a few thousand frames).
type watch struct {
	*capture.Socket
	packet wire.Packet
	groups map[netip.Addr]*traffic
}

// traffic counts the packets of one group at a port.
type traffic struct {
	messages int    // RoCEv2 datagrams to the group, either way
	reports  int    // from the host: join the group
	leaves   int    // from the host: leave the group
	protocol string // of the last report or leave
}

// newWatch watches a port in a namespace.
func newWatch(ns *lab.Namespace, port string) (*watch, error) {
	socket, err := capture.Open(ns, port)
	if err != nil {
		return nil, err
	}
	return &watch{Socket: socket, groups: map[netip.Addr]*traffic{}}, nil
}

// of returns a group's traffic.
func (w *watch) of(group netip.Addr) *traffic {
	t := w.groups[group]
	if t == nil {
		t = new(traffic)
		w.groups[group] = t
	}
	return t
}

// update counts the packets since the last update.
func (w *watch) update() error {
	for frame, err := range w.Frames() {
		if err != nil {
			return err
		}
		if err := w.count(frame); err != nil {
			return err
		}
	}
	return nil
}

// count counts a frame that the switch received from the host, or sent to it. A train counts as several packets.
func (w *watch) count(frame capture.Frame) error {
	packets, err := frame.Packets()
	if err != nil {
		return err
	}
	for _, packet := range packets {
		if wire.Parse(packet, &w.packet) == wire.FaultNone {
			w.of(w.packet.Destination().Addr()).messages++
		}
	}
	if frame.Outgoing {
		return nil
	}
	for _, m := range capture.MembershipMessages(frame.Data) {
		t := w.of(m.Group)
		switch m.Kind {
		case capture.Report:
			t.reports++
		case capture.Leave:
			t.leaves++
		default:
			continue
		}
		t.protocol = m.Protocol
	}
	return nil
}
