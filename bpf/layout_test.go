// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

func spec(t *testing.T) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := loadSteer()
	must(t, err)
	return spec
}

// TestAddressLayout compares the layout of the key in Go with the object's BTF. The tests of this file do not require
// root.
func TestAddressLayout(t *testing.T) {
	var c *btf.Struct
	must(t, spec(t).Types.TypeByName("address", &c))
	sameLayout(t, c, reflect.TypeFor[steerAddress]())
}

// sameLayout compares fields by offset, size and case-insensitive name.
func sameLayout(t *testing.T, c *btf.Struct, g reflect.Type) {
	t.Helper()
	if int(c.Size) != int(g.Size()) {
		t.Errorf("%s: %d bytes in C, %d in Go", c.Name, c.Size, g.Size())
	}
	var fields []reflect.StructField
	for field := range g.Fields() {
		if field.Name != "_" {
			fields = append(fields, field)
		}
	}
	if len(fields) != len(c.Members) {
		t.Fatalf("%s: %d fields in C, %d in Go", c.Name, len(c.Members), len(fields))
	}
	for i, member := range c.Members {
		size, err := btf.Sizeof(member.Type)
		must(t, err)
		field := fields[i]
		if !strings.EqualFold(member.Name, field.Name) || uintptr(member.Offset.Bytes()) != field.Offset || uintptr(size) != field.Type.Size() {
			t.Errorf("%s: %s at %d, %d bytes in C; %s at %d, %d bytes in Go", c.Name,
				member.Name, member.Offset.Bytes(), size, field.Name, field.Offset, field.Type.Size())
		}
	}
}

// TestVerdictNames checks that the names shown to users are those of the C source in lower case.
func TestVerdictNames(t *testing.T) {
	var c *btf.Enum
	must(t, spec(t).Types.TypeByName("verdict", &c))
	if len(c.Values) != NumVerdicts+1 {
		t.Fatalf("%d values (verdicts and their number) in C, %d verdicts in Go", len(c.Values), NumVerdicts)
	}
	for _, value := range c.Values[:NumVerdicts] {
		if got, want := Verdict(value.Value).String(), strings.ToLower(value.Name); got != want {
			t.Errorf("verdict %d: %q, want %q", value.Value, got, want)
		}
	}
	if got := Verdict(NumVerdicts).String(); got != "verdict(17)" {
		t.Errorf("no verdict: %q", got)
	}
}

func TestMapLayouts(t *testing.T) {
	maps := spec(t).Maps
	for _, test := range []struct {
		name                     string
		kind                     ebpf.MapType
		keySize, valueSize, size uint32
	}{
		{steerMapOwnAddresses, ebpf.Hash, 20, 1, 16384},
		{steerMapOwnTails, ebpf.Array, 4, 8, 65536 / 64},
		{steerMapGroups, ebpf.Hash, 20, 1, 16384},
		{steerMapQueuePairs, ebpf.Array, 4, 8, (multicastQPN + 1) / 64},
		{steerMapRings, ebpf.XSKMap, 4, 4, 1},
		{steerMapCounters, ebpf.PerCPUArray, 4, 8, uint32(NumVerdicts)},
	} {
		m := maps[test.name]
		if m.Type != test.kind || m.KeySize != test.keySize || m.ValueSize != test.valueSize || m.MaxEntries != test.size {
			t.Errorf("%s: %s of %d entries, %d to %d bytes; want %+v", test.name, m.Type, m.MaxEntries, m.KeySize, m.ValueSize, test)
		}
	}
}

func TestProgramTakesFragments(t *testing.T) {
	program := spec(t).Programs[steerProgRocedSteer]
	if program.SectionName != "xdp.frags" || program.License != "Dual BSD/GPL" {
		t.Errorf("section %q, license %q", program.SectionName, program.License)
	}
}
