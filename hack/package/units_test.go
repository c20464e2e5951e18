package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// mostExposure is what systemd-analyze may say of a unit at most, of 10.
const mostExposure = 2.0

var exposure = regexp.MustCompile(`exposure level for .*: ([0-9.]+)`)

// TestUnitsAreHardened: what is open beyond it is open on purpose, and the unit says why.
func TestUnitsAreHardened(t *testing.T) {
	needs.Tools(t, "systemd-analyze")
	for _, unit := range []string{"root/roced.service", "root/roced@.service"} {
		out, err := needs.Command(t, "systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := exposure.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%s: %v: %s", unit, err, out)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > mostExposure {
			t.Errorf("%s: exposure %s, at most %.1f: %s", unit, found[1], mostExposure, out)
		}
	}
}
