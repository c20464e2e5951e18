// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/roced/roced/datapath/wire"

// routes caches the other ports of the network until they change.
type routes struct {
	changes uint64   // Network.changes when peers was read
	peers   []*port  // the other ports
	mac     wire.MAC // destination of the last frame for a single port
	to      *port    // that port
}

// find returns the port, or the queue of the port, that receives the first frame. It returns nil if the frame must be
// flooded, because its destination is a multicast MAC or a MAC that no port has.
func (r *routes) find(p *port) *port {
	if to := r.findHost(p); to != nil {
		return to.queueOf(p.out.at(0))
	}
	return nil
}

// findHost returns the first port of the destination.
func (r *routes) findHost(p *port) *port {
	if p.network.changes.Load() != r.changes {
		*r = routes{changes: p.network.changes.Load(), peers: p.network.portsBut(p)}
	}
	if len(r.peers) == 1 {
		return r.peers[0] // with one other port, flooding would have the same result
	}
	dest := wire.MAC(p.out.at(0))
	if dest == r.mac && r.to != nil {
		return r.to
	}
	for _, other := range r.peers {
		if other.mac == dest {
			r.mac, r.to = dest, other
			return other
		}
	}
	return nil
}

// queueOf returns the queue that receives a frame. Like a NIC that steers by queue pair, it selects the queue by the
// destination QPN, so that all packets for one queue pair use one queue.
func (p *port) queueOf(frame []byte) *port {
	if len(p.queues) == 1 {
		return p
	}
	var packet wire.Packet
	if wire.Parse(frame, &packet) != wire.FaultNone {
		return p
	}
	return p.queues[packet.BTH().DestQP()%wire.QPN(len(p.queues))]
}
