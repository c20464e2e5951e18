// SPDX-License-Identifier: Apache-2.0

package litmus

import "testing"

// pair returns a model of two threads that execute the same body with two places exchanged.
func pair(body func(t *Thread, own, other string) Reg, never func(a, b Reg) Condition) func(p *Program) {
	return func(p *Program) {
		var a, b Reg
		p.Thread("a", func(t *Thread) { a = body(t, "x", "y") })
		p.Thread("b", func(t *Thread) { b = body(t, "y", "x") })
		p.Never("both", never(a, b))
	}
}

func both(value int) func(a, b Reg) Condition {
	return func(a, b Reg) Condition { return a.Is(value).And(b.Is(value)) }
}

func add(n int) int { return n + 1 }

// storeThenLoad is the litmus test SB (store buffering), with optional steps between the store and the load.
func storeThenLoad(s, l Order, between func(t *Thread)) func(p *Program) {
	return pair(func(t *Thread, own, other string) Reg {
		t.Store("", own, s, 1)
		between(t)
		return t.Load("", other, l)
	}, both(0))
}

// changeThenLoad is SB with a read-modify-write instead of the store.
func changeThenLoad(l Order) func(p *Program) {
	return pair(func(t *Thread, own, other string) Reg {
		t.Change("", own, Atomic, add)
		return t.Load("", other, l)
	}, both(0))
}

// loadThenStore is LB (load buffering).
func loadThenStore(l, s Order, how func(t *Thread, r Reg, place string)) func(p *Program) {
	return pair(func(t *Thread, own, other string) Reg {
		r := t.Load("", own, l)
		if how == nil {
			t.Store("", other, s, 1)
		} else {
			how(t, r, other)
		}
		return r
	}, both(1))
}

// message is MP (message passing).
func message(s, l Order, between func(t *Thread)) func(p *Program) {
	return func(p *Program) {
		p.Thread("writer", func(t *Thread) {
			t.Store("", "data", Plain, 1)
			between(t)
			t.Store("", "flag", s, 1)
		})
		p.Thread("reader", func(t *Thread) {
			flag := t.Load("", "flag", l)
			t.If(flag.Is(1), func() { p.Never("old data", t.Load("", "data", Plain).Is(0)) })
		})
	}
}

// loads returns a model in which two threads load two places that two other threads store to. With one place it is
// CoRR, with two places IRIW.
func loads(first, second string, order Order) func(p *Program) {
	return func(p *Program) {
		p.Thread("w", func(t *Thread) { t.Store("", "x", Plain, 1) })
		if first != second {
			p.Thread("v", func(t *Thread) { t.Store("", "y", Plain, 1) })
		}
		load := func(name, first, second string) (one, two Reg) {
			p.Thread(name, func(t *Thread) { one, two = t.Load("", first, order), t.Load("", second, Plain) })
			return one, two
		}
		a, b := load("a", first, second)
		if first == second {
			p.Never("a newer value, then an older one", a.Is(1).And(b.Is(0)))
			return
		}
		c, d := load("b", second, first)
		p.Never("the threads see the stores in different orders", a.Is(1).And(b.Is(0)).And(c.Is(1)).And(d.Is(0)))
	}
}

// speculated is PPOCA: a load returns the value of a speculative store, and a load that depends on it is performed
// early.
func speculated(p *Program) {
	p.Thread("writer", func(t *Thread) {
		t.Store("", "data", Plain, 1)
		t.Store("", "flag", Release, 1)
	})
	p.Thread("reader", func(t *Thread) {
		flag := t.Load("", "flag", Plain)
		t.If(flag.Is(1), func() {
			t.Store("", "own", Plain, 1)
			own := t.Load("", "own", Plain)
			t.If(own.Is(1), func() { p.Never("old data", t.Load("", "data", Plain).Is(0)) })
		})
	})
}

// exclusive returns a model in which two threads increment a place.
func exclusive(o Order) func(p *Program) {
	return pair(func(t *Thread, own, other string) Reg { return t.Change("", "sum", o, add) }, both(0))
}

// TestMachine runs the litmus tests of the literature. The machine must find exactly the outcomes that the architecture
// allows.
func TestMachine(t *testing.T) {
	nothing, dmb := func(*Thread) {}, func(t *Thread) { t.Fence("") }
	otherChange := func(t *Thread) { t.Change("", t.name, Atomic, add) }
	otherPlace := func(t *Thread) { t.Store("", t.name, Atomic, 0); t.Load("", t.name, Atomic) }
	byValue := func(t *Thread, r Reg, place string) {
		t.StoreValue("", place, Plain, func(v Values) int { return v(r) })
	}
	byBranch := func(t *Thread, r Reg, place string) { t.If(r.Is(1), func() { t.Store("", place, Plain, 1) }) }
	tests := []struct {
		name    string
		allowed bool
		build   func(p *Program)
	}{
		{"SB", true, storeThenLoad(Plain, Plain, nothing)},
		{"SB, STLR and LDAR", false, storeThenLoad(Atomic, Atomic, nothing)},
		{"SB, STLR and LDAPR", true, storeThenLoad(Release, Acquire, nothing)},
		{"SB, STR and LDAR", true, storeThenLoad(Plain, Atomic, nothing)},
		{"SB, DMB", false, storeThenLoad(Plain, Plain, dmb)},
		{"SB, LDAXR and STLXR of another place between", true, storeThenLoad(Plain, Plain, otherChange)},
		{"SB, STLR and LDAR of another place between", false, storeThenLoad(Plain, Plain, otherPlace)},
		{"SB, LDAXR and STLXR, then LDR", true, changeThenLoad(Plain)},
		{"SB, LDAXR and STLXR, then LDAPR", true, changeThenLoad(Acquire)},
		{"SB, LDAXR and STLXR, then LDAR", false, changeThenLoad(Atomic)},
		{"MP", true, message(Plain, Plain, nothing)},
		{"MP, STLR", true, message(Release, Plain, nothing)},
		{"MP, LDAPR", true, message(Plain, Acquire, nothing)},
		{"MP, STLR and LDAPR", false, message(Release, Acquire, nothing)},
		{"MP, DMB and LDAPR", false, message(Plain, Acquire, dmb)},
		{"MP, LDAXR and STLXR between, LDAPR", true, message(Plain, Acquire, otherChange)},
		{"MP, STLR and LDAR between, LDAPR", false, message(Plain, Acquire, otherPlace)},
		{"PPOCA", true, speculated},
		{"LB", true, loadThenStore(Plain, Plain, nil)},
		{"LB, LDAPR", false, loadThenStore(Acquire, Plain, nil)},
		{"LB, STLR", false, loadThenStore(Plain, Release, nil)},
		{"LB, the value depends", false, loadThenStore(Plain, Plain, byValue)},
		{"LB, the store depends", false, loadThenStore(Plain, Plain, byBranch)},
		{"CoRR", false, loads("x", "x", Plain)},
		{"IRIW", true, loads("x", "y", Plain)},
		{"IRIW, LDAPR", false, loads("x", "y", Acquire)},
		{"exclusives", false, exclusive(Plain)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if fault := Fault(test.build); (fault != nil) != test.allowed {
				t.Errorf("allowed: want %v; %v", test.allowed, fault)
			}
		})
	}
}

// TestNoThreadWaits: a thread that waits for a value that is never stored is a fault.
func TestNoThreadWaits(t *testing.T) {
	if Fault(func(p *Program) { p.Thread("a", func(t *Thread) { t.Await("", "x", Atomic, 1) }) }) == nil {
		t.Error("no fault")
	}
}
