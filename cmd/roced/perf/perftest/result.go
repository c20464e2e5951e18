// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Result is the client's result, as sent to a server whose program took no part: five numbers of 8 bytes
// each, big endian, the last three of them float64.
type Result struct {
	Size        uint64  // bytes per message
	Messages    uint64  // total of all queue pairs
	Peak        float64 // MiB per second
	Average     float64
	MessageRate float64 // millions per second
}

const mebibyte = 1 << 20

// NewResult returns the result of a number of messages of size bytes, at perSecond.
func NewResult(size int, messages, perSecond uint64) Result {
	average := float64(perSecond) * float64(size) / mebibyte
	return Result{Size: uint64(size), Messages: messages, Peak: average, Average: average, MessageRate: float64(perSecond) / 1e6}
}

// PerSecond returns the number of messages per second.
func (r Result) PerSecond() uint64 { return uint64(r.MessageRate * 1e6) }

// BytesPerSecond returns the number of bytes per second.
func (r Result) BytesPerSecond() uint64 { return uint64(r.Average * mebibyte) }

// check returns EBADMSG for an impossible result.
func (r Result) check() error {
	for _, number := range []float64{r.Peak, r.Average, r.MessageRate} {
		if math.IsNaN(number) || number < 0 || number > 1e9 {
			return fmt.Errorf("the peer's result is invalid: %v: %w", r, unix.EBADMSG)
		}
	}
	return nil
}

// TellResult sends the client's result, after the messages.
func (x *Conversation) TellResult(r Result) error {
	if err := x.round(0); err != nil {
		return err
	}
	_, err := x.swapNumbers(r)
	return err
}

// AwaitResult waits, on the server, for the end of the messages and the client's result. Both sides send a
// result; the server's is ignored.
func (x *Conversation) AwaitResult() (r Result, err error) {
	if err := x.round(0); err != nil {
		return r, err
	}
	numbers, err := x.swapNumbers(Result{})
	if err != nil {
		return r, err
	}
	r = Result{numbers[0], numbers[1], math.Float64frombits(numbers[2]), math.Float64frombits(numbers[3]), math.Float64frombits(numbers[4])}
	return r, r.check()
}

func (x *Conversation) swapNumbers(own Result) (peer [5]uint64, err error) {
	numbers := [...]uint64{own.Size, own.Messages, math.Float64bits(own.Peak), math.Float64bits(own.Average), math.Float64bits(own.MessageRate)}
	for i, n := range numbers {
		message, err := x.swap(binary.BigEndian.AppendUint64(nil, n))
		if err != nil {
			return peer, err
		}
		peer[i] = binary.BigEndian.Uint64(message)
	}
	return peer, nil
}
