// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"testing"

	"github.com/roced/roced/verbs/hca"
)

// TestDifferencesKnowsEveryField: a device that differs in one field differs in one key.
func TestDifferencesKnowsEveryField(t *testing.T) {
	if d := Differences(NewDevice("eth0"), NewDevice("eth0")); d != nil {
		t.Errorf("the same differ in %q", d)
	}
	seen := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Device]()) {
		if !field.IsExported() {
			continue
		}
		other := NewDevice("eth0")
		switch f := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index); {
		case f.Kind() == reflect.String:
			f.SetString("other")
		case f.CanInt():
			f.SetInt(77)
		case field.Name == "DCQCN":
			other.DCQCN.MinRate = 77
		default:
			other.Tuning = hca.Tuning{BusyPollBudget: 1}
		}
		d := Differences(NewDevice("eth0"), other)
		if len(d) != 1 || seen[d[0]] {
			t.Errorf("%s: %q", field.Name, d)
			continue
		}
		seen[d[0]] = true
	}
}
