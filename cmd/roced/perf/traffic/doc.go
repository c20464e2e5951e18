// SPDX-License-Identifier: Apache-2.0

// Package traffic has the parts shared by all measurements of datagrams: sending (send.go), counting arrivals
// (arrivals.go), and timeouts (watch.go).
package traffic
