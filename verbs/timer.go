// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Times of reliable connections are 5-bit codes. These functions convert them, as the tables of the specification do.

// maxTimeCode is the largest code.
const maxTimeCode = 31

// RNRTimerDuration returns the time of a code of QPAttr.MinRNRTimer: the time that a peer waits before it retries after
// an RNR NAK (IBA 9.7.5.2.8). -1 for codes above 31. Code 0 is the longest:
//
//	0  655.36 ms     8    0.16 ms    16    2.56 ms    24   40.96 ms
//	1    0.01 ms     9    0.24 ms    17    3.84 ms    25   61.44 ms
//	2    0.02 ms    10    0.32 ms    18    5.12 ms    26   81.92 ms
//	3    0.03 ms    11    0.48 ms    19    7.68 ms    27  122.88 ms
//	4    0.04 ms    12    0.64 ms    20   10.24 ms    28  163.84 ms
//	5    0.06 ms    13    0.96 ms    21   15.36 ms    29  245.76 ms
//	6    0.08 ms    14    1.28 ms    22   20.48 ms    30  327.68 ms
//	7    0.12 ms    15    1.92 ms    23   30.72 ms    31  491.52 ms
func RNRTimerDuration(code uint8) time.Duration {
	if code > maxTimeCode {
		return -1
	}
	return wire.Syndrome(code).RNRTime()
}

// RNRTimerCode returns the code of the shortest time that is at least d, or 0, the code of the longest time.
func RNRTimerCode(d time.Duration) uint8 {
	for code := uint8(1); code <= maxTimeCode; code++ {
		if RNRTimerDuration(code) >= d {
			return code
		}
	}
	return 0
}

// TimeoutDuration returns the time of a code of QPAttr.Timeout: 4.096 µs × 2ⁿ (IBA 9.7.6.1.3). A request is
// retransmitted after one to four times this duration. Code 0 returns 0, which means forever; codes above 31 return -1.
func TimeoutDuration(code uint8) time.Duration {
	if code > maxTimeCode {
		return -1
	}
	return wire.AckTimeout(code)
}

// TimeoutCode returns the code of the shortest time that is at least d, 31 (2 h 26 min) at most; 0, forever, for d <= 0.
func TimeoutCode(d time.Duration) uint8 {
	if d <= 0 {
		return 0
	}
	code := uint8(1)
	for code < maxTimeCode && TimeoutDuration(code) < d {
		code++
	}
	return code
}
