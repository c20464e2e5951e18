// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestParseSize(t *testing.T) {
	for _, row := range []struct {
		text string
		want Size // -1: an error
	}{
		{"0", 0}, {"4096", 4096}, {"64k", 65536}, {"64K", 65536}, {"64KiB", 65536}, {"64kb", 65536}, {"1M", 1 << 20}, {"1G", 1 << 30},
		{"", -1}, {"k", -1}, {"x", -1}, {"1.5k", -1}, {"64b", -1}, {"64i", -1}, {"4T", -1}, {"64 k", -1}, {"2G", -1}, {"99999999999999999999", -1},
	} {
		if got, err := ParseSize(row.text); got != max(0, row.want) || (err != nil) != (row.want < 0) {
			t.Errorf("%q: %d, %v", row.text, got, err)
		}
	}
	if got, err := ParseSize("-2k"); err != nil || got != -2048 { // the command checks the minimum
		t.Errorf("%d, %v", got, err)
	}
}
