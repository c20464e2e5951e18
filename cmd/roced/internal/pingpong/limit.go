// SPDX-License-Identifier: Apache-2.0

package pingpong

// MaxTrips is the maximum number of round trips: their times are kept in memory, 8 bytes each.
const MaxTrips = 10_000_000
