// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"math"
	"testing"

	"github.com/roced/roced/datapath/wire"
)

var testCQE = CQE{
	ID: 0x0102030405060708, Status: 0x11, Opcode: 0x80, Flags: 0x2122, ByteLen: 0x31323334, Imm: 0xDEADBEEF,
	QPN: 0x00A1A2A3, SourceQP: 0x00B1B2B3, Token: 0xC1C2C3C4, VendorErr: 0xD1D2D3D4, PKeyIndex: 0xE1E2,
	SMAC: wire.MAC{0x02, 0x03, 0x04, 0x05, 0x06, 0x07}, VLAN: 0xF1F2, NetworkHeader: 0x0A, SL: 0x0B, Port: 0x0C,
}

// goldenCQE is testCQE in its slot.
var goldenCQE = []byte{
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // 0 id
	0x11,       // 8 status
	0x80,       // 9 opcode
	0x22, 0x21, // 10 flags
	0x34, 0x33, 0x32, 0x31, // 12 byte length
	0xEF, 0xBE, 0xAD, 0xDE, // 16 immediate
	0xA3, 0xA2, 0xA1, 0x00, // 20 QP number
	0xB3, 0xB2, 0xB1, 0x00, // 24 source QP
	0xC4, 0xC3, 0xC2, 0xC1, // 28 token
	0xD4, 0xD3, 0xD2, 0xD1, // 32 vendor error
	0xE2, 0xE1, // 36 P_Key index
	0x02, 0x03, 0x04, 0x05, 0x06, 0x07, // 38 source MAC, as on the wire
	0xF2, 0xF1, // 44 VLAN
	0x0A,                                     // 46 network header
	0x0B,                                     // 47 service level
	0x0C,                                     // 48 port
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // 49 reserved
}

func TestCompletionLayout(t *testing.T) {
	p, c, memory := completionEnds(t, CompletionGeometry(2), 1) // the second slot
	if !p.Put(&testCQE) {
		t.Fatal("full")
	}
	p.Publish()
	if slot := memory[256+64:][:len(goldenCQE)]; !bytes.Equal(slot, goldenCQE) {
		t.Errorf("slot\n% x, want\n% x", slot, goldenCQE)
	}
	var got CQE
	if n := c.Available(1); n != 1 {
		t.Fatalf("%d available", n)
	}
	if c.Get(&got); got != testCQE {
		t.Errorf("%+v, want %+v", got, testCQE)
	}
}

// TestCompletionSetsAllFields: Set clears all fields of the previous entry.
func TestCompletionSetsAllFields(t *testing.T) {
	got := testCQE
	got.Set(1, 2, 3, 4, 5)
	if want := (CQE{ID: 1, Status: 2, Opcode: 3, QPN: 4, Token: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p, c, memory := completionEnds(t, CompletionGeometry(1), 0)
	garbage(memory[slotsOffset:], 1)
	if !p.Put(&got) {
		t.Fatal("full")
	}
	p.Publish()
	back := testCQE
	if c.Available(1) != 1 {
		t.Fatal("nothing available")
	}
	if c.Get(&back); back != got {
		t.Errorf("%+v, want %+v", back, got)
	}
}

// TestCompletionAcrossWrap passes entries in batches of every size, through 2³².
func TestCompletionAcrossWrap(t *testing.T) {
	for _, start := range starts {
		for batch := uint32(1); batch <= testEntries; batch++ {
			p, c, _ := completionEnds(t, CompletionGeometry(testEntries), start)
			for round := range uint64(20) {
				for i := range uint64(batch) {
					if !p.Put(&CQE{ID: round<<8 | i}) {
						t.Fatalf("start %d, batch %d: full", start, batch)
					}
				}
				if n := c.Available(1); n != 0 {
					t.Fatalf("%d available before Publish", n)
				}
				p.Publish()
				if n := c.Available(batch); n != batch {
					t.Fatalf("%d available, want %d", n, batch)
				}
				var e CQE
				for i := range uint64(batch) {
					if c.Get(&e); e.ID != round<<8|i {
						t.Fatalf("entry %#x, want %#x", e.ID, round<<8|i)
					}
				}
				c.Publish()
			}
		}
	}
}

// TestCompletionOverrun: a full queue accepts no entries and keeps the existing ones. Slots are free again after the
// program has published.
func TestCompletionOverrun(t *testing.T) {
	p, c, _ := completionEnds(t, CompletionGeometry(testEntries), math.MaxUint32-3)
	for id := range uint64(testEntries) {
		if !p.Put(&CQE{ID: id}) {
			t.Fatalf("full after %d", id)
		}
	}
	if p.Put(&CQE{ID: 99}) {
		t.Error("the queue accepted more entries than slots")
	}
	if c.Failed() {
		t.Error("Failed before Fail")
	}
	p.Fail()
	p.Publish()
	if !c.Failed() || c.Available(testEntries) != testEntries {
		t.Errorf("failed %v, %d available", c.Failed(), c.Available(testEntries))
	}
	var e CQE
	for id := range uint64(testEntries) {
		if c.Get(&e); e.ID != id {
			t.Errorf("entry %d, want %d", e.ID, id)
		}
	}
	if p.Put(&CQE{}) {
		t.Error("a slot is free before the program returned it")
	}
	if c.Publish(); !p.Put(&CQE{}) {
		t.Error("no slot is free after the program returned them")
	}
}

func TestCompletionLyingPeers(t *testing.T) {
	for _, start := range starts {
		for _, lie := range lies {
			p, c, memory := completionEnds(t, CompletionGeometry(testEntries), start)
			garbage(memory[slotsOffset:], uint64(lie))
			word(memory, 0).Store(start + lie)
			if n := c.Available(1); n != 0 {
				t.Errorf("producer's index %d ahead: %d available", lie, n)
			}
			word(memory, 128).Store(start - lie)
			if p.Put(&testCQE) {
				t.Errorf("consumer's index %d behind: not full", lie)
			}
		}
	}
}

// TestArm checks the events of each arming.
func TestArm(t *testing.T) {
	next := func(c *CompletionConsumer) { c.Arm(false) }
	solicited := func(c *CompletionConsumer) { c.Arm(true) }
	for _, row := range []struct {
		name              string
		arm               []func(*CompletionConsumer)
		plain, special    bool // whether a wake-up is owed for a plain entry, or a solicited one
		specialAfterPlain bool
	}{
		{"not armed", nil, false, false, false},
		{"armed for the next", []func(*CompletionConsumer){next}, true, true, false},
		{"armed for solicited", []func(*CompletionConsumer){solicited}, false, true, true},
		{"the next, then solicited", []func(*CompletionConsumer){next, solicited}, true, true, false},
		{"the next overrides solicited", []func(*CompletionConsumer){solicited, next}, true, true, false},
		{"armed twice is once", []func(*CompletionConsumer){next, next}, true, true, false},
	} {
		armed := func() *CompletionProducer {
			p, c, _ := completionEnds(t, CompletionGeometry(1), 0)
			for _, arm := range row.arm {
				arm(c)
			}
			return p
		}
		p := armed()
		if got := takeArmed(p, false); got != row.plain {
			t.Errorf("%s, a plain entry: wake-up %v", row.name, got)
		}
		if got := takeArmed(p, true); got != row.specialAfterPlain {
			t.Errorf("%s, a solicited entry after a plain one: wake-up %v", row.name, got)
		}
		if got := takeArmed(armed(), true); got != row.special {
			t.Errorf("%s, a solicited entry: wake-up %v", row.name, got)
		}
		if takeArmed(p, true) {
			t.Errorf("%s: a second wake-up", row.name)
		}
	}
}

// TestArmLie: an arming word with unknown bits causes one event, like any word except 0.
func TestArmLie(t *testing.T) {
	p, _, memory := completionEnds(t, CompletionGeometry(1), 0)
	word(memory, 132).Store(math.MaxUint32)
	if !takeArmed(p, false) || takeArmed(p, true) {
		t.Error("not one wake-up")
	}
}
