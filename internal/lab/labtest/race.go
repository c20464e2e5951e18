// SPDX-License-Identifier: Apache-2.0

//go:build race

package labtest

// Race reports whether the race detector is built in. With it tests are limited by computation, and a sync.Pool drops
// a quarter of its objects.
const Race = true
