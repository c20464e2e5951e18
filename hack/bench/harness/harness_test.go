// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain is also the main function of a child: Start executes the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		if err := Serve(os.Args[2], childRoles, func(j Job) error { return nil }); err != nil {
			fmt.Println("{")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var childRoles = Roles{
	"test count": func(j Job) (Result, error) {
		var m Meter
		if err := Announce(Endpoint{QPN: 7}); err != nil {
			return Result{}, err
		}
		m.Add(j.Count)
		time.Sleep(time.Millisecond)
		m.Add(j.Count)
		return m.Result(), nil
	},
	"test wait": func(Job) (Result, error) {
		if err := Announce(Endpoint{}); err != nil {
			return Result{}, err
		}
		<-UntilStopped.Done()
		if !Stopping.Load() {
			return Result{}, errors.New("ended before it was stopped")
		}
		return Result{Messages: 1}, nil
	},
	"test fail": func(Job) (Result, error) { return Result{}, errors.New("it fails") },
}

// TestChildren checks that a child reports that it is ready, and its result when it ends or is stopped.
func TestChildren(t *testing.T) {
	for _, row := range []struct {
		role string
		stop bool
		want uint64
	}{{"count", false, 10}, {"wait", true, 1}} {
		c, err := Start(Job{Variant: "test", Role: row.role, Count: 5})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Finish(row.stop)
		if err != nil || r.Messages != row.want || row.role == "count" && (r.PerSecond <= 0 || c.Ready.QPN != 7) {
			t.Errorf("%s: %+v, %+v, %v", row.role, c.Ready, r, err)
		}
	}
}

// TestChildrenFail checks that Start returns an error with the job's name if the child fails before it is ready.
func TestChildrenFail(t *testing.T) {
	for _, role := range []string{"fail", "no such"} {
		if _, err := Start(Job{Variant: "test", Role: role}); err == nil || !strings.Contains(err.Error(), "test "+role) {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestTurns checks that each round measures all variants, and that the record contains the median and the rate of each
// round.
func TestTurns(t *testing.T) {
	m := Measurements{Rounds: 3}
	var order []string
	rates := map[string][]float64{"a": {3, 1, 2}, "b": {10, 30, 20}}
	next := map[string]int{}
	err := m.InTurns("case", 64, "setting", []string{"a", "b"}, func(variant string) (float64, error) {
		order = append(order, variant)
		next[variant]++
		return rates[variant][next[variant]-1], nil
	})
	if err != nil || strings.Join(order, "") != "ababab" || len(m.records) != 2 {
		t.Fatalf("%v, %v, %+v", order, err, m.records)
	}
	for i, want := range []float64{2, 20} {
		if r := m.records[i]; r.PerSecond != want || !slices.Equal(r.Rates, rates[r.Variant]) || r.Name != "case" || r.Size != 64 || r.Setting != "setting" {
			t.Errorf("%+v, want the median %v", r, want)
		}
	}
	if got := m.ratios(1); !strings.HasPrefix(got, "10.00 × a, round by round") {
		t.Errorf("the ratio is %q", got)
	}
	failed := errors.New("it fails")
	if err := m.InTurns("case", 64, "", []string{"a"}, func(string) (float64, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestParts checks that only matching parts run, that no match is an error, and that the first error ends the run.
func TestParts(t *testing.T) {
	var ran []string
	failed := errors.New("it fails")
	part := func(name string, err error) Part {
		return Part{name, func() error { ran = append(ran, name); return err }}
	}
	parts := []Part{part("one", nil), part("two", failed), part("three", nil)}
	for _, row := range []struct {
		only, ran string
		err       string
	}{{"one|three", "one three", ""}, {"", "one two", "two: it fails"}, {"four", "", `no part matches "four"`}} {
		ran = nil
		err := (&Measurements{}).Run(regexp.MustCompile(row.only), parts)
		if strings.Join(ran, " ") != row.ran || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%q: %v, %v", row.only, ran, err)
		}
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for _, row := range []struct {
		values []float64
		want   float64
	}{{[]float64{5}, 5}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(row.values); got != row.want {
			t.Errorf("the median of %v is %v", row.values, got)
		}
	}
	var sorted []time.Duration
	for i := range 100 {
		sorted = append(sorted, time.Duration(i))
	}
	for percent, want := range map[float64]int64{0: 0, 50: 50, 99: 99, 99.9: 99, 100: 99} {
		if got := Percentile(sorted, percent); got != want {
			t.Errorf("the percentile %v is %d", percent, got)
		}
	}
	if Percentile(nil, 50) != 0 {
		t.Error("percentile of no values is not 0")
	}
}
