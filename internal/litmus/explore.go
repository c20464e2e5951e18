// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// search explores all states of a program, depth first.
type search struct {
	*Program
	seen  map[string]struct{}
	trace []int // the steps performed so far
	fault error
}

// maxStates limits a search: models are small.
const maxStates = 2_000_000

// explore performs the program in all orders and returns the first fault.
func (p *Program) explore() (states int, fault error) {
	s := search{Program: p, seen: map[string]struct{}{}}
	s.visit(p.start())
	return len(s.seen), s.fault
}

// visit explores all states that follow from a state, which it may modify.
func (s *search) visit(at state) {
	if s.fault != nil || !s.resolve(at) {
		return
	}
	if _, seen := s.seen[string(at)]; seen {
		return
	}
	if s.seen[string(at)] = struct{}{}; len(s.seen) > maxStates {
		s.fault = fmt.Errorf("more than %d states: make the model smaller", maxStates)
		return
	}
	over, moves := true, 0
	for _, t := range s.threads {
		on, open := s.path(at, t)
		if open >= 0 {
			s.guess(at, open)
		}
		for k, i := range on {
			if s.isOver(at, i) {
				continue
			}
			over = false
			if s.steps[i].kind <= store {
				moves += s.try(at, t, on, k)
			}
		}
	}
	switch {
	case over:
		s.check(at)
	case moves == 0:
		s.fail(at, "a thread waits forever")
	}
}

// resolve performs everything with a single outcome: conditions whose registers are known, and fences. It returns false if
// a guess was wrong.
func (s *search) resolve(at state) (right bool) {
	for again := true; again; {
		again = false
		for _, t := range s.threads {
			on, _ := s.path(at, t)
			for k, i := range on {
				if s.isOver(at, i) || s.steps[i].kind <= store {
					continue
				}
				known := byte(done)
				if s.steps[i].kind == branch {
					known = s.condition(at, on[:k], i)
				} else if _, may := s.source(at, on, k); !may {
					known = waiting
				}
				switch was := s.mark(at, i)[0]; {
				case known == waiting:
					continue
				case was != waiting && was+2 != known:
					return false
				}
				s.mark(at, i)[0], again = known, true
				break // the rest of the path may have changed
			}
		}
	}
	return true
}

// condition evaluates the condition of a branch: knownIs, knownNo, or waiting for a register.
func (s *search) condition(at state, on []int, i int) byte {
	missing := false
	is := s.steps[i].when(s.values(at, on, &missing))
	switch {
	case missing:
		return waiting
	case is:
		return knownIs
	}
	return knownNo
}

// guess assumes each outcome of a condition in turn, so that loads after it can be performed speculatively.
func (s *search) guess(at state, open int) {
	for _, guess := range []byte{guessNo, guessIs} {
		next := slices.Clone(at)
		s.mark(next, open)[0] = guess
		s.visit(next)
	}
}

// try performs a step if it can be performed, and continues. It returns 0 if the step must wait.
func (s *search) try(at state, t *Thread, on []int, k int) (moves int) {
	next, out := s.perform(at, t, on, k)
	if out == performed {
		s.trace = append(s.trace, on[k])
		s.visit(next)
		s.trace = s.trace[:len(s.trace)-1]
	}
	if out == waits {
		return 0
	}
	return 1
}

// check tests a state in which all threads have ended.
func (s *search) check(at state) {
	for _, rule := range s.never {
		missing := false
		if rule.when(s.values(at, nil, &missing)) {
			s.fail(at, rule.what)
		}
	}
}

// fail records a fault and the steps that led to it.
func (s *search) fail(at state, what string) {
	lines := []string{what}
	for _, i := range s.trace {
		one, verb := &s.steps[i], "loads"
		if one.kind == store {
			verb = "stores"
		}
		of := slices.IndexFunc(s.threads, func(t *Thread) bool { return i < t.first+t.count })
		lines = append(lines, fmt.Sprintf("%s %s %s=%d (%s)", s.threads[of].name, verb, s.places[one.place], s.mark(at, i)[1], one.label))
	}
	s.fault = errors.New(strings.Join(lines, "\n\t"))
}
