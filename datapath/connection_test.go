package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// lengths at which a message has another number of packets, or a pad.
var lengths = []int{0, 1, 3, 1023, 1024, 1025, 2048, 2049, 5000, 65536, 200_001}

// Each operation of each service, of each length: the bytes, and the completions at both ends.
func TestConnectedOperations(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
		p := connect(t, service, 1, nil)
		r := rand.New(rand.NewPCG(1, 2))
		for _, length := range lengths {
			for _, o := range []ring.Opcode{ring.WRSend, ring.WRSendWithImm, ring.WRRDMAWrite, ring.WRRDMAWriteWithImm, ring.WRRDMARead} {
				if service == wire.ServiceUC && o == ring.WRRDMARead {
					continue
				}
				from, into := 100, 1_000_001
				source, dest := p.a.fill(r, from, length), p.b.memory[into:into+length]
				local := at(from, length)
				if o == ring.WRRDMARead {
					source, dest = p.b.fill(r, into, length), p.a.memory[from:from+length]
				}
				clear(dest)
				s := to(o, into)
				s.ID, s.Imm = 7, 0xCAFE
				takes := 0
				if o != ring.WRRDMAWrite && o != ring.WRRDMARead {
					takes = 1
					p.b.postRecv(9, at(into, length))
				}
				p.a.post(s, ring.Atomic{}, local)
				ofA, ofB := p.await(1, takes)
				for p.round() { // a WRITE over UC completes before it has arrived
				}
				if c := ofA[0]; c.Status != ring.WCSuccess || c.ID != 7 || c.Opcode != o.Completes() || c.ByteLen != uint32(length) {
					t.Errorf("%v of %d bytes: %+v", o, length, c)
				}
				if takes == 1 {
					c := ofB[0]
					imm := o == ring.WRSendWithImm || o == ring.WRRDMAWriteWithImm
					if c.Status != ring.WCSuccess || c.ID != 9 || c.ByteLen != uint32(length) || imm != (c.Flags&ring.WCWithImm != 0) || imm && c.Imm != 0xCAFE {
						t.Errorf("%v of %d bytes: receive %+v", o, length, c)
					}
				}
				if !bytes.Equal(source, dest) {
					t.Errorf("%v of %d bytes: other bytes", o, length)
				}
			}
		}
	}
}

func TestAtomics(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	place := p.b.memory[800:808]
	binary.NativeEndian.PutUint64(place, 40)
	for _, row := range []struct {
		o            ring.Opcode
		a            ring.Atomic
		before, then uint64
	}{
		{ring.WRAtomicFetchAndAdd, ring.Atomic{CompareAdd: 2}, 40, 42},
		{ring.WRAtomicCmpAndSwp, ring.Atomic{CompareAdd: 41, Swap: 1}, 42, 42},
		{ring.WRAtomicCmpAndSwp, ring.Atomic{CompareAdd: 42, Swap: 1 << 63}, 42, 1 << 63},
		{ring.WRAtomicFetchAndAdd, ring.Atomic{CompareAdd: 1 << 63}, 1 << 63, 0},
	} {
		p.a.post(to(row.o, 800), row.a, at(16, 8))
		ofA, _ := p.await(1, 0)
		expect(t, ofA, ring.WCSuccess)
		if ofA[0].Opcode != row.o.Completes() || ofA[0].ByteLen != 8 || number(p.a.memory[16:]) != row.before || number(place) != row.then {
			t.Errorf("%+v: found %d, then %d; %+v", row, number(p.a.memory[16:]), number(place), ofA[0])
		}
	}
}
