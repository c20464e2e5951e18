// SPDX-License-Identifier: Apache-2.0

//go:build !race

package labtest

// Race reports whether the race detector is built in.
const Race = false
