// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// window is the number of requests that a queue pair passes on in one turn: the maximum of a train.
const window = 32

// deepen gives a station a queue pair with room for a window.
func deepen(s *station) *station {
	s.Helper()
	c := defaultCap()
	c.MaxSendWR, c.MaxRecvWR = window, window
	s.qp = s.newQP(c)
	check(s, s.qp.Activate(testQKey))
	return s
}

// postWindow posts a window of messages that are numbered in their immediate data and their bytes.
func (s *station) postWindow(ah *verbs.AH, to *station, first, length int) {
	s.Helper()
	wrs := make([]verbs.SendWR, window)
	for i := range wrs {
		copy(s.slot(window+i), pattern(length, first+i))
		wrs[i] = s.send(uint64(i), ah, to, s.piece(window+i, length))
		wrs[i].Opcode, wrs[i].ImmData = verbs.WRSendWithImm, uint32(first+i)
	}
	s.post(wrs...)
}

// windows sends windows of messages of one length. It expects all of them, complete and in order, and returns their
// GRHs.
func windows(t *testing.T, from, to *station, ah *verbs.AH, length, count int) (grhs []verbs.GRH) {
	t.Helper()
	for first := 0; first < count*window; first += window {
		for i := range window {
			to.receive(i)
		}
		from.postWindow(ah, to, first, length)
		for _, wc := range from.wait(window) {
			check(t, wc.Err())
		}
		for i, wc := range to.wait(window) {
			grh, payload := wc.Payload(to.slot(int(wc.ID)))
			if int(wc.ImmData) != first+i || !bytes.Equal(payload, pattern(length, first+i)) {
				t.Fatalf("message %d of %d bytes: got number %d with %d bytes", first+i, length, wc.ImmData, len(payload))
			}
			grhs = append(grhs, slices.Clone(grh))
		}
	}
	return grhs
}

// checkHeaders checks the received IP headers: the hop limit, and for IPv4 an identification that increases by one per
// packet.
func checkHeaders(t *testing.T, grhs []verbs.GRH, hops uint8) {
	t.Helper()
	for i, grh := range grhs {
		if grh.HopLimit() != hops {
			t.Fatalf("packet %d: got hop limit %d, want %d", i, grh.HopLimit(), hops)
		}
		if i > 0 && grh.IPVersion() == 4 && identification(grh) != identification(grhs[i-1])+1 {
			t.Fatalf("packet %d: identification %d after %d", i, identification(grh), identification(grhs[i-1]))
		}
	}
}

// identification returns the identification of the IPv4 header in a GRH.
func identification(grh verbs.GRH) uint16 { return binary.BigEndian.Uint16(grh[20+4:]) }

// lossless checks that no card has dropped anything.
func lossless(t *testing.T, stations ...*station) {
	t.Helper()
	for _, s := range stations {
		got := counts(t, s.device)
		if len(dropsOf(s.device)) > 0 || got["malformed"]+got["rx_dropped"]+got["rx_ring_full"] > 0 {
			t.Errorf("counters %v", got)
		}
	}
}

// passed counts the frames that a sniffer has seen since the last call: complete packets with a valid ICRC, and trains.
func (s *sniffer) passed(outgoing bool) (packets, trains int) {
	s.Helper()
	for frame, err := range s.Frames() {
		check(s, err)
		var p wire.Packet
		switch fault := wire.Parse(frame.Data, &p); {
		case fault == wire.FaultNotRoCE || frame.Outgoing != outgoing:
		case frame.Unfinished.Train():
			trains++
		case fault != wire.FaultNone || !p.CheckICRC():
			s.Errorf("invalid frame of %d bytes (%v, or wrong ICRC): % x", len(frame.Data), fault, frame.Data[:64])
		default:
			packets++
		}
	}
	return packets, trains
}

// pathRow is a way to send, and a receiver.
type pathRow struct {
	mode     SendMode
	receiver XDPMode
	// trains leave the host whole, and are segmented before the last link
	trains bool
}

func (r pathRow) String() string { return fmt.Sprintf("%s to %s XDP", r.mode, r.receiver) }

// pathRows returns the combinations that lose nothing. Automatic mode sees no XDP program at the other end of its veth,
// whatever is behind it.
func pathRows() []pathRow {
	return []pathRow{{SendTrains, XDPNative, link.KernelCutsTrains()}, {SendAuto, XDPNative, false}, {SendAuto, XDPGeneric, false}}
}

// run sends bursts to B's addresses, and observes them on two links: the sender's, and the receiver's.
func (r pathRow) run(t *testing.T, l *stations, first, last *sniffer, hops uint8, dests ...string) {
	t.Helper()
	const count = 8
	for _, dest := range dests {
		ah := l.a.ah(dest)
		message(t, l.a, l.b, ah, pattern(64, 1)) // resolves the neighbours
		first.passed(false)
		last.passed(true)
		for _, length := range []int{4, 64, 1001, 1024} {
			var grhs []verbs.GRH
			left := inTrains(t, l.a.device, func() { grhs = windows(t, l.a, l.b, ah, length, count) })
			checkHeaders(t, grhs, hops)
			_, trains := first.passed(false)
			packets, whole := last.passed(true)
			if (left > 0) != r.trains || (trains > 0) != r.trains || packets != count*window || whole > 0 {
				t.Errorf("%d bytes to %s: %d packets left in trains; %d trains on the first link, %d packets and %d trains on the last",
					length, dest, left, trains, packets, whole)
			}
		}
	}
	lossless(t, l.a, l.b)
}

// newPath opens a station at each end with the row's modes.
func (r pathRow) newPath(t *testing.T, hosts *labtest.PairLab) *stations {
	t.Helper()
	return &stations{hosts,
		deepen(newStation(t, open(t, hosts.A, WithSendMode(r.mode)))), deepen(newStation(t, open(t, hosts.B, WithXDPMode(r.receiver))))}
}

// A bridge passes trains on unchanged. For a receiver with native XDP they are segmented on its link.
func TestSendThroughABridge(t *testing.T) {
	t.Parallel()
	for _, row := range pathRows() {
		t.Run(row.String(), func(t *testing.T) {
			hosts := labtest.Switched(t)
			first, last := newSnifferOn(t, hosts.Bridge.Namespace, hosts.PortA), newSnifferOn(t, hosts.Bridge.Namespace, hosts.PortB)
			row.run(t, row.newPath(t, &hosts.PairLab), first, last, 64, "10.77.0.2", "fd77::2")
		})
	}
}

// A router forwards a train as one packet, with its hop limit lowered, which the ICRC does not cover. Behind the
// router, the kernel segments it into the packets that were sent.
func TestSendThroughARouter(t *testing.T) {
	t.Parallel()
	for _, row := range pathRows() {
		t.Run(row.String(), func(t *testing.T) {
			hosts := labtest.Routed(t)
			first, last := newSnifferOn(t, hosts.Router, "eth1"), newSnifferOn(t, hosts.Router, "eth2")
			row.run(t, row.newPath(t, &hosts.PairLab), first, last, 63, "10.78.0.2", "fd78::2")
		})
	}
}
