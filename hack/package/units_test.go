package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// mostExposure is what systemd-analyze may say of a unit at most, of 10.
const mostExposure = 2.0

var exposure = regexp.MustCompile(`exposure level for .*: ([0-9.]+)`)

// TestUnitsAreHardened: what is open beyond it is open on purpose, and the unit says why.
func TestUnitsAreHardened(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not here to ask; make test-package asks it too")
		return
	}
	for _, unit := range []string{"root/roced.service", "root/roced@.service"} {
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := exposure.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%s: %v: %s", unit, err, out)
		}
		if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > mostExposure {
			t.Errorf("%s: exposure %s, at most %.1f: %s", unit, found[1], mostExposure, out)
		}
	}
}
