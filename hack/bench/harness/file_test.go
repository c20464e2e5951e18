// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func parts(t *testing.T, name string) (found map[string]float64) {
	t.Helper()
	f, err := readRecords(name)
	if err != nil {
		t.Fatal(err)
	}
	found = map[string]float64{}
	for _, p := range f.Parts {
		if p.Commit == "" || p.Machine.CPU == "" || p.Machine.Kernel == "" || p.Machine.Processors == 0 || len(p.Records) != 1 {
			t.Errorf("%+v", p)
		}
		if _, twice := found[p.Part]; twice {
			t.Errorf("part %s occurs twice", p.Part)
		}
		found[p.Part] = p.Records[0].PerSecond
	}
	return found
}

// TestPartsAreMerged checks that a new measurement of a part replaces only that part.
func TestPartsAreMerged(t *testing.T) {
	b := &Measurements{Output: filepath.Join(t.TempDir(), "bench.json"), Rounds: 3, Duration: time.Second}
	for _, step := range []struct {
		part string
		rate float64
		want map[string]float64
	}{
		{"oneway", 1, map[string]float64{"oneway": 1}},
		{"idle", 2, map[string]float64{"oneway": 1, "idle": 2}},
		{"oneway", 3, map[string]float64{"oneway": 3, "idle": 2}},
	} {
		if err := b.keep(step.part, []Record{{Name: step.part, PerSecond: step.rate}}); err != nil {
			t.Fatal(err)
		}
		if got := parts(t, b.Output); !reflect.DeepEqual(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.part, got, step.want)
		}
	}
}

// TestForeignFileIsKept checks that a file with another format is not overwritten.
func TestForeignFileIsKept(t *testing.T) {
	b := &Measurements{Output: filepath.Join(t.TempDir(), "bench.json")}
	const old = `[{"name": "oneway"}]`
	if err := os.WriteFile(b.Output, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.keep("oneway", nil); err == nil {
		t.Error("no error")
	}
	if text, err := os.ReadFile(b.Output); err != nil || string(text) != old {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(i))
	}
	for percent, want := range map[float64]int64{50: 500, 99: 990, 99.9: 999, 100: 999} {
		if got := Percentile(all, percent); got != want {
			t.Errorf("%v of a hundred: %d, want %d", percent, got, want)
		}
	}
	if Percentile(nil, 50) != 0 {
		t.Error("percentile of no values is not 0")
	}
}
