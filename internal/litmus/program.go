// SPDX-License-Identifier: Apache-2.0

package litmus

import "slices"

// Order is the memory order of an access; see the package comment.
type Order uint8

// The orders.
const (
	Plain   Order = iota
	Acquire       // of loads
	Release       // of stores
	Atomic
)

// Program is a model. Memory is zero at first, unless Set changes it.
type Program struct {
	threads []*Thread
	places  []string
	initial []byte
	steps   []step
	never   []rule
}

// rule is a condition that must not hold when all threads have ended.
type rule struct {
	what string
	when Condition
}

// Thread is a thread of a program. Its methods add steps. Their first parameter is a label: the name of the modelled
// function.
type Thread struct {
	program *Program
	name    string
	first   int // index in the program's steps
	count   int
}

// Reg is a register: the value that a load returns.
type Reg int

// None is the value of a register whose load was not on the thread's path.
const None = 0xff

// Values returns the value of a register.
type Values func(Reg) int

// Value and Condition are computed from registers.
type (
	Value     func(Values) int
	Condition func(Values) bool
)

type kind uint8

const (
	load kind = iota
	store
	fence
	branch
)

type step struct {
	kind   kind
	label  string
	place  int
	order  Order
	until  func(int) bool // the load waits until this returns true; nil: it does not wait
	value  Value          // of a store
	locked bool           // the load of a read-modify-write
	pair   int            // of the store of a read-modify-write: the load; otherwise -1
	when   Condition      // of a branch
	skipTo int            // of a branch: the next step if the condition does not hold
}

// Thread adds a thread with the steps that body adds.
func (p *Program) Thread(name string, body func(t *Thread)) {
	t := &Thread{program: p, name: name, first: len(p.steps)}
	p.threads = append(p.threads, t)
	body(t)
	t.count = len(p.steps) - t.first
}

// Set sets the initial value of a place.
func (p *Program) Set(place string, value byte) { p.initial[p.place(place)] = value }

// Never adds a condition that must not hold when all threads have ended. If it holds, the model has a fault named what.
// A thread that waits forever is a fault, too.
func (p *Program) Never(what string, when Condition) { p.never = append(p.never, rule{what, when}) }

// Memory returns a register with the final value of a place, for Never.
func (p *Program) Memory(place string) Reg { return Reg(-1 - p.place(place)) }

func (p *Program) place(name string) int {
	if i := slices.Index(p.places, name); i >= 0 {
		return i
	}
	p.places, p.initial = append(p.places, name), append(p.initial, 0)
	return len(p.places) - 1
}

func (t *Thread) add(s step) Reg {
	t.program.steps = append(t.program.steps, s)
	return Reg(len(t.program.steps) - 1)
}

func (t *Thread) access(k kind, label, place string, o Order) step {
	return step{kind: k, label: label, place: t.program.place(place), order: o, pair: -1}
}

// Load loads a place.
func (t *Thread) Load(label, place string, o Order) Reg {
	return t.add(t.access(load, label, place, o))
}

// Await loads a place until it has a value.
func (t *Thread) Await(label, place string, o Order, value int) {
	s := t.access(load, label, place, o)
	s.until = func(v int) bool { return v == value }
	t.add(s)
}

// Store stores a constant.
func (t *Thread) Store(label, place string, o Order, value int) {
	t.StoreValue(label, place, o, func(Values) int { return value })
}

// StoreValue stores a value that depends on registers.
func (t *Thread) StoreValue(label, place string, o Order, value Value) {
	s := t.access(store, label, place, o)
	s.value = value
	t.add(s)
}

// To returns a function for Change that replaces a value by n.
func To(n int) func(int) int { return func(int) int { return n } }

// Change performs an atomic read-modify-write and returns the old value.
func (t *Thread) Change(label, place string, o Order, change func(int) int) Reg {
	s := t.access(load, label, place, o)
	return t.exchange(s, change)
}

func (t *Thread) exchange(s step, change func(int) int) Reg {
	order := s.order
	if s.locked = true; order == Release {
		s.order = Plain
	}
	was := t.add(s)
	t.exchanged(s, was, order, func(v Values) int { return change(v(was)) })
	return was
}

func (t *Thread) exchanged(s step, was Reg, order Order, value Value) {
	t.add(step{kind: store, label: s.label, place: s.place, order: order, pair: int(was), value: value})
}

// Lock acquires a lock: a place that is 0 while the lock is free.
func (t *Thread) Lock(label, place string) {
	s := t.access(load, label, place, Atomic)
	s.until = func(v int) bool { return v == 0 }
	t.exchange(s, func(int) int { return 1 })
}

// TryLock acquires a lock and adds the steps of locked, or those of failed if the lock is not free.
func (t *Thread) TryLock(label, place string, locked, failed func()) {
	s := t.access(load, label, place, Atomic)
	s.locked = true
	was := t.add(s)
	t.If(was.Is(0), func() {
		t.exchanged(s, was, Atomic, func(Values) int { return 1 })
		locked()
	})
	t.If(was.Is(1), failed)
}

// Unlock releases a lock.
func (t *Thread) Unlock(label, place string) { t.Store(label, place, Atomic, 0) }

// Fence adds a full memory barrier.
func (t *Thread) Fence(label string) { t.add(step{kind: fence, label: label, pair: -1}) }

// If adds the steps of body, which are performed if a condition holds.
func (t *Thread) If(when Condition, body func()) {
	at := t.add(step{kind: branch, pair: -1, when: when})
	body()
	t.program.steps[at].skipTo = len(t.program.steps)
}

// Is returns the condition that the register has a value.
func (r Reg) Is(value int) Condition { return func(v Values) bool { return v(r) == value } }

// IsNot returns the condition that the register was loaded with another value.
func (r Reg) IsNot(value int) Condition {
	return func(v Values) bool { return v(r) != value && v(r) != None }
}

// And returns the condition that both hold.
func (c Condition) And(other Condition) Condition {
	return func(v Values) bool { a, b := c(v), other(v); return a && b }
}
