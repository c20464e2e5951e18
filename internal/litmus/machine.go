// SPDX-License-Identifier: Apache-2.0

package litmus

import "slices"

// state is a state of the machine: for each place its value and the number of stores to it, and for each step its status,
// its value, and the number of stores to its place when it was performed.
type state []byte

const (
	cellSize = 2
	markSize = 3

	// The status of a step. Conditions are guessed, then known; all other steps are done.
	waiting = 0
	done    = 1
	guessNo = 2
	guessIs = 3
	knownNo = 4
	knownIs = 5

	// forwarded, plus the index of a store within its thread, replaces the number of stores where a load has returned the
	// value of a store that was not performed.
	forwarded = 0x80
)

func (p *Program) start() state {
	s := make(state, cellSize*len(p.places)+markSize*len(p.steps))
	for i, value := range p.initial {
		s[cellSize*i] = value
	}
	return s
}

func (p *Program) cell(s state, place int) []byte { return s[cellSize*place:][:cellSize] }

func (p *Program) mark(s state, i int) []byte {
	return s[cellSize*len(p.places)+markSize*i:][:markSize]
}

// path returns the steps of a thread up to the first If that is neither known nor guessed, and the index of that If, or -1.
func (p *Program) path(s state, t *Thread) (on []int, open int) {
	on = make([]int, 0, t.count)
	for i := t.first; i < t.first+t.count; {
		on = append(on, i)
		status := p.mark(s, i)[0]
		switch {
		case p.steps[i].kind == branch && status == waiting:
			return on, i
		case p.steps[i].kind == branch && (status == guessNo || status == knownNo):
			i = p.steps[i].skipTo
		default:
			i++
		}
	}
	return on, -1
}

// isOver reports whether a step has been performed, or its condition is known.
func (p *Program) isOver(s state, i int) bool {
	status := p.mark(s, i)[0]
	return status == done || status >= knownNo
}

// values returns the registers of a path. It sets missing when the value of a register is not known yet.
func (p *Program) values(s state, on []int, missing *bool) Values {
	return func(r Reg) int {
		switch {
		case r < 0:
			return int(p.cell(s, -1-int(r))[0])
		case p.mark(s, int(r))[0] == done:
			return int(p.mark(s, int(r))[1])
		case slices.Contains(on, int(r)):
			*missing = true
		}
		return None
	}
}

// orders reports whether step i must wait for step j, which precedes it on the path and is not over.
func (p *Program) orders(j, i int) bool {
	first, second := &p.steps[j], &p.steps[i]
	switch {
	case first.kind == fence || second.kind == fence:
		return first.kind != branch
	case first.kind == branch:
		return second.kind == store
	case first.kind == load && first.order != Plain:
		return true
	case second.kind == store:
		return second.order != Plain || first.until != nil || first.place == second.place || second.pair == j
	case first.kind == store && first.order != Plain:
		return second.order == Atomic
	}
	return false
}

// source returns the last store to the place of a load that precedes it and is not performed, or -1. may
// reports whether the step at an index of the path can be performed.
func (p *Program) source(s state, on []int, at int) (source int, may bool) {
	source = -1
	for _, j := range on[:at] {
		if p.isOver(s, j) {
			continue
		}
		if p.orders(j, on[at]) {
			return -1, false
		}
		if p.steps[j].kind == store && p.steps[j].place == p.steps[on[at]].place {
			source = j
		}
	}
	return source, true
}

// outcome is the outcome of an attempt to perform a step.
type outcome uint8

const (
	waits      outcome = iota
	impossible         // the steps performed out of order must be discarded
	performed
)

// perform performs a step of a path, in a copy of the state.
func (p *Program) perform(s state, t *Thread, on []int, at int) (next state, out outcome) {
	i := on[at]
	source, may := p.source(s, on, at)
	switch {
	case !may:
		return nil, waits
	case p.steps[i].kind == store:
		return p.performStore(s, on, i)
	case source >= 0:
		return p.forward(s, t, on, i, source)
	}
	one, cell := &p.steps[i], p.cell(s, p.steps[i].place)
	if one.until != nil && !one.until(int(cell[0])) {
		return nil, waits
	}
	for _, j := range on[at+1:] {
		later := p.steps[j].kind == load && p.steps[j].place == one.place && p.isOver(s, j)
		if later && !p.sameStore(s, t, i, j, cell[1]) {
			return nil, impossible
		}
	}
	return p.finish(s, i, cell[0], cell[1]), performed
}

// sameStore reports whether load j, which follows load i and was performed before it, did not return an older value than i.
func (p *Program) sameStore(s state, t *Thread, i, j int, stores byte) bool {
	seen := p.mark(s, j)[2]
	if seen < forwarded {
		return seen == stores
	}
	from := t.first + int(seen-forwarded)
	return from > i || p.mark(s, from)[2] == stores
}

func (p *Program) performStore(s state, on []int, i int) (state, outcome) {
	one, cell, missing := &p.steps[i], p.cell(s, p.steps[i].place), false
	value := byte(one.value(p.values(s, on, &missing)))
	if missing {
		return nil, waits
	}
	if one.pair >= 0 && p.mark(s, one.pair)[2] != cell[1] {
		return nil, impossible // an STLXR fails after a store of another thread, and the LDAXR is repeated
	}
	next := p.finish(s, i, value, cell[1]+1)
	copy(p.cell(next, one.place), []byte{value, cell[1] + 1})
	return next, performed
}

// forward performs a load with the value of a store of its thread that is not performed yet.
func (p *Program) forward(s state, t *Thread, on []int, i, source int) (state, outcome) {
	one, from, missing := &p.steps[i], &p.steps[source], false
	value := from.value(p.values(s, on, &missing))
	if missing || one.locked || one.order != Plain && from.pair >= 0 || one.until != nil && !one.until(value) {
		return nil, waits
	}
	return p.finish(s, i, byte(value), forwarded+byte(source-t.first)), performed
}

func (p *Program) finish(s state, i int, value, stores byte) state {
	next := slices.Clone(s)
	copy(p.mark(next, i), []byte{done, value, stores})
	return next
}
