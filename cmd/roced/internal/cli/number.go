// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dash is printed instead of an unavailable number.
const Dash = "-"

// Grouped formats a number with commas.
func Grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Several formats a number with a noun, which has a plural in s.
func Several(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Grouped(n) + " " + thing + "s"
}

// Megabytes formats a number of bytes in units of 10^6 bytes.
func Megabytes(bytes float64) string { return strconv.FormatFloat(bytes/1e6, 'f', 2, 64) }

// Percentile returns the smallest of the sorted times that is not exceeded by the given percentage of them.
func Percentile(sorted []time.Duration, percent float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(percent / 100 * float64(len(sorted)))
	if float64(rank) < percent/100*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// PerSecond returns a rate; 0 if no time has passed.
func PerSecond(n uint64, elapsed time.Duration) uint64 {
	if elapsed <= 0 {
		return 0
	}
	return uint64(float64(n) / elapsed.Seconds())
}

// List formats packet counts by name.
func List(packets map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(packets)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, Grouped(packets[name])))
	}
	return strings.Join(parts, ", ")
}
