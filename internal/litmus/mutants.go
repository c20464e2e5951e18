// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"slices"
	"testing"
)

// Check explores models of one protocol and their mutants. The name of a mutant is the label and the weaker access, as in
// "Publish: store plain". At least one of the models must find it, unless harmless lists it with a reason.
func Check(t *testing.T, harmless map[string]string, models ...func(p *Program)) {
	t.Helper()
	states, found := 0, map[string]bool{}
	for _, build := range models {
		model := &Program{}
		build(model)
		n, fault := model.explore()
		if fault != nil {
			t.Errorf("the model has a fault: %v", fault)
		}
		states += n
		for name, mutant := range model.mutants() {
			if !found[name] {
				_, fault := mutant.explore()
				found[name] = fault != nil
			}
		}
	}
	count := 0
	for name, is := range found {
		if is {
			count++
		}
		if _, listed := harmless[name]; listed == is {
			t.Errorf("mutant %q: found %v, listed as harmless %v", name, is, listed)
		}
	}
	for name := range harmless {
		if _, is := found[name]; !is {
			t.Errorf("%q is not a mutant", name)
		}
	}
	t.Logf("%d states; %d of %d mutants found, the others are harmless", states, count, len(found))
}

// Fault explores a model and returns its first fault.
func Fault(build func(p *Program)) error {
	p := &Program{}
	build(p)
	_, fault := p.explore()
	return fault
}

// mutants returns the programs in which all accesses of one label are weaker, or a fence is missing.
func (p *Program) mutants() map[string]*Program {
	all := map[string]*Program{}
	weaken := func(i int, name string, to step) {
		name = p.steps[i].label + ": " + name
		if all[name] == nil {
			m := *p
			m.steps = slices.Clone(p.steps)
			all[name] = &m
		}
		all[name].steps[i] = to
	}
	for i, one := range p.steps {
		weak := one
		weak.order = Plain
		switch {
		case one.kind == fence:
			weaken(i, "no fence", step{kind: branch, pair: -1, when: func(Values) bool { return true }, skipTo: i + 1})
		case one.kind == branch || one.order == Plain:
		case one.kind == store:
			weaken(i, "store plain", weak)
		default:
			weaken(i, "load plain", weak)
			if one.order == Atomic && !one.locked {
				weak.order = Acquire
				weaken(i, "load acquire", weak)
			}
		}
	}
	return all
}
