// SPDX-License-Identifier: Apache-2.0

// Package pingpong exchanges messages of one size in round trips, one at a time, like ibv_ud_pingpong and
// ib_send_lat: for roced ping, and for roced perf with perftest. It prints nothing.
package pingpong
