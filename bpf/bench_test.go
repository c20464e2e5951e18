// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
)

// BenchmarkSteer measures nanoseconds per packet in the kernel. Subtract the result of "nothing", a program that only
// passes packets, which is the cost of the kernel's loop.
func BenchmarkSteer(b *testing.B) {
	few, many := newHost(b, newWorld(0, true)), newHost(b, newWorld(0, true))
	fill(b, many)
	arp := patch(toOwn4().bytes(), 12, 0x08, 0x06)
	for _, bench := range []struct {
		name    string
		program *ebpf.Program
		frame   []byte
	}{
		{"nothing", passAll(b), toOwn4().bytes()},
		{"redirect UD IPv4, 1 QP", few.objs.RocedSteer, toOwn4().bytes()},
		{"redirect UD IPv4, 10000 QPs", many.objs.RocedSteer, toOwn4().bytes()},
		{"redirect UD IPv6, 1 QP", few.objs.RocedSteer, toOwn6().bytes()},
		{"redirect UD IPv6, 10000 QPs", many.objs.RocedSteer, toOwn6().bytes()},
		{"redirect group, 2 groups", few.objs.RocedSteer, toGroup4().bytes()},
		{"redirect group, 10000 groups", many.objs.RocedSteer, toGroup4().bytes()},
		{"drop unknown QP", few.objs.RocedSteer, with(toOwn4(), func(f *frame) { f.qpn = unknownQP })},
		{"pass group, 10000 groups", many.objs.RocedSteer, with(toGroup4(), func(f *frame) { f.dst = twin4 })},
		{"pass not RoCE", few.objs.RocedSteer, arp},
	} {
		b.Run(bench.name, func(b *testing.B) {
			_, each, err := bench.program.Benchmark(bench.frame, b.N, nil)
			must(b, err)
			b.ReportMetric(float64(each.Nanoseconds()), "ns/packet")
		})
	}
}

// fill adds 10,000 queue pairs and groups.
func fill(b *testing.B, h *host) {
	group := netip.MustParseAddr("239.2.0.0")
	for qpn := range uint32(10_000) {
		must(b, h.AddQP(1+qpn*1677))
		must(b, h.AddGroup(group))
		group = group.Next()
	}
}
