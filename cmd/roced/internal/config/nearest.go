// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
)

// nearest returns the known key that an unknown one most resembles, or "". A key with the same last name in
// another table counts as near.
func nearest(key string) string {
	best, least := "", len(key)/3+1
	for _, known := range keys {
		distance := distance(key, known.name)
		if lastName(key) == lastName(known.name) {
			distance = min(distance, 1)
		}
		if distance <= least && (best == "" || distance < least) {
			best, least = known.name, distance
		}
	}
	return best
}

func lastName(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// distance returns the Levenshtein distance: the number of letters to change, add or remove.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
