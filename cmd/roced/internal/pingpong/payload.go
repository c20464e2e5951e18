// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"slices"
)

// Payload returns the payload that ibv_ud_pingpong sends and checks with -c: a 0 at the start of each page
// and '{' elsewhere. Without -c it sends '{' only and checks nothing.
func Payload(size int) []byte {
	const page = 4096
	payload := slices.Repeat([]byte{'{'}, size)
	for i := 0; i < size; i += page {
		payload[i] = 0
	}
	return payload
}
