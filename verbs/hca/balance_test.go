// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/lab"
)

// balance accounts for the messages that one end of a link sent to the other.
//
//	sent ─► sender's engine ─► sender's link ─► steering ─► socket ─► engine ─► program
//	        unreachable,       tx_dropped       pass_*,     rx_*      drops    delivered
//	        link_down                           drop_*
type balance struct {
	testing.TB
	from, to   *lab.Namespace
	sender     crowd
	receiver   crowd
	lostBefore uint64 // by the sender's link, before the test
	rows       map[string]uint64
}

func newBalance(t testing.TB, from, to *lab.Namespace, sender, receiver crowd) *balance {
	return &balance{TB: t, from: from, to: to, sender: sender, receiver: receiver, lostBefore: lostBy(t, from)}
}

// lostBy returns the number of packets that a host's link dropped instead of sending. Packets dropped behind the
// steering program are also in the socket's counters.
func lostBy(t testing.TB, host *lab.Namespace) uint64 {
	t.Helper()
	s := eth0(t, host).Attrs().Statistics
	return s.TxDropped + s.TxErrors
}

// read counts the messages by where they ended.
func (b *balance) read() (sum uint64) {
	b.Helper()
	s, err := b.receiver.device().Statistics()
	check(b, err)
	own := b.sender.device().engine.Counters()
	b.rows = map[string]uint64{
		"delivered":       s.Engine.Delivered,
		"link tx_dropped": lostBy(b, b.from) - b.lostBefore,
		"rx_dropped":      s.Socket.RxDropped, "rx_ring_full": s.Socket.RxRingFull, "malformed": s.Socket.Malformed,
	}
	for i, n := range s.Engine.Drops {
		if reason := datapath.Drop(i); reason.Unsent() {
			b.rows["not sent: "+reason.String()] = own.Drops[i]
		} else {
			b.rows["engine "+reason.String()] = n
		}
	}
	// The interface has also counted the packets that it refused.
	refused := b.rows["not sent: "+datapath.DropInterface.String()]
	b.rows["link tx_dropped"] -= min(refused, b.rows["link tx_dropped"])
	for _, c := range s.Steering {
		if c.Name != bpf.Redirected.String() && c.Name != bpf.PassNotRoCE.String() {
			b.rows["steering "+c.Name] = c.Value
		}
	}
	for _, n := range b.rows {
		sum += n
	}
	return sum
}

// settle waits until every message is counted.
func (b *balance) settle() {
	b.Helper()
	for range 100 {
		if b.read() == b.sender.posted() {
			return
		}
		asleep(b, b.receiver.device())
	}
}

// report prints the counts, and fails unless all messages are accounted for.
func (b *balance) report() {
	b.Helper()
	sum := b.read()
	var text strings.Builder
	fmt.Fprintf(&text, "%s to %s\n%12d  sent\n", b.from.Name(), b.to.Name(), b.sender.posted())
	for _, name := range slices.Sorted(maps.Keys(b.rows)) {
		if b.rows[name] != 0 {
			fmt.Fprintf(&text, "%12d  %s\n", b.rows[name], name)
		}
	}
	fmt.Fprintf(&text, "%12d  in all", sum)
	b.Log(text.String())
	if sum != b.sender.posted() || b.rows["delivered"] != b.receiver.delivered() || b.rows["delivered"] == 0 {
		b.Errorf("sent %d, accounted for %d; the program received %d", b.sender.posted(), sum, b.receiver.delivered())
	}
	for _, expected := range []string{"engine qkey", "steering drop_unknown_qp", "engine no_receive"} {
		if b.rows[expected] == 0 {
			b.Errorf("no %s: the soak does not cover it", expected)
		}
	}
}
