// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"
)

var benchmarkSizes = []int{64, 1024}

func TestHotPathAllocatesNothing(t *testing.T) {
	for _, shape := range shapes {
		template, d := NewTemplate(shape.path), datagram(true)
		var frame [MaxHeaders + 1024 + MaxTrailer]byte
		var p Packet
		var grh [GRHLen]byte
		if n := testing.AllocsPerRun(100, func() { template.Seal(frame[:], &d, 1024) }); n != 0 {
			t.Errorf("%s: Seal allocates %v times", shape.name, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			if Parse(frame[:], &p) != FaultNone || !p.CheckICRC() {
				t.Fatal("the parsed packet differs from the sealed one")
			}
			p.PutGRH(&grh)
			_, _, _, _ = p.Source(), p.Destination(), p.Payload(), p.DETH().QKey()
		}); n != 0 {
			t.Errorf("%s: Parse and CheckICRC allocate %v times", shape.name, n)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, shape := range shapes {
		for _, size := range benchmarkSizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				template, d := NewTemplate(shape.path), datagram(false)
				var frame [MaxHeaders + 1024 + MaxTrailer]byte
				b.ReportAllocs()
				for b.Loop() {
					d.PSN++
					template.Seal(frame[:], &d, size)
				}
			})
		}
	}
}

func BenchmarkParseCheckICRC(b *testing.B) {
	for _, shape := range shapes {
		for _, size := range benchmarkSizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				frame := build(b, shape.path, datagram(false), filler(size))
				var p Packet
				b.ReportAllocs()
				for b.Loop() {
					if Parse(frame, &p) != FaultNone || !p.CheckICRC() {
						b.Fatal("the parsed packet differs from the sealed one")
					}
				}
			})
		}
	}
}
