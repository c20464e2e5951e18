// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`Test[A-Za-z]+`")

// TestFaultsAreTested: docs/FAULTS.md names at least one test for each fault. hack/structure checks
// that they exist.
func TestFaultsAreTested(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/FAULTS.md")
	check(t, err)
	faults := strings.Split(string(text), "\n## ")[1:]
	for _, fault := range faults {
		if !testName.MatchString(fault) {
			t.Errorf("no test: %s", fault)
		}
	}
	if len(faults) < 10 {
		t.Errorf("%d faults", len(faults))
	}
}
