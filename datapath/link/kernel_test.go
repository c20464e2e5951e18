// SPDX-License-Identifier: Apache-2.0

package link

import "testing"

func TestCutsTrains(t *testing.T) {
	for release, want := range map[string]bool{
		"5.15.0-91-generic": false, "6.1.0-56-amd64": false, "6.2.0": true, "6.2-rc1": true, "6.12.95+deb12-amd64": true, "6.18.44-fc": true,
		"7.0": true, "": false, "unknown": false, "6": false,
	} {
		if got := cutsTrains(release); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
}
