// SPDX-License-Identifier: Apache-2.0

// Package deadline turns the deadlines of a net.Conn into contexts.
//
//	d := deadline.New()
//	d.Set(at)         SetReadDeadline: also for calls that are waiting
//	d.Context()       done at the deadline, with os.ErrDeadlineExceeded
package deadline
