package perftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Result is what a client has measured, as it tells a server whose program took no part: five numbers of 8
// bytes each, big endian, the last three of them float64.
type Result struct {
	Size        uint64  // bytes of each message
	Messages    uint64  // of all queue pairs
	Peak        float64 // MiB a second
	Average     float64
	MessageRate float64 // millions a second
}

const mebibyte = 1 << 20

// NewResult is of so many messages of a size, at so many a second.
func NewResult(size int, messages, perSecond uint64) Result {
	average := float64(perSecond) * float64(size) / mebibyte
	return Result{Size: uint64(size), Messages: messages, Peak: average, Average: average, MessageRate: float64(perSecond) / 1e6}
}

// PerSecond is how many messages there were a second.
func (r Result) PerSecond() uint64 { return uint64(r.MessageRate * 1e6) }

// BytesPerSecond is how many bytes of messages there were a second.
func (r Result) BytesPerSecond() uint64 { return uint64(r.Average * mebibyte) }

// check rejects what cannot have been measured. It is EBADMSG.
func (r Result) check() error {
	for _, number := range []float64{r.Peak, r.Average, r.MessageRate} {
		if math.IsNaN(number) || number < 0 || number > 1e9 {
			return fmt.Errorf("the peer says that it has measured %v: %w", r, unix.EBADMSG)
		}
	}
	return nil
}

// TellResult is the client's, after the messages.
func (x *Conversation) TellResult(r Result) error {
	if err := x.round(0); err != nil {
		return err
	}
	_, err := x.swapNumbers(r)
	return err
}

// AwaitResult is the server's wait until the messages are over, and for the result. What a server itself
// sends is of no use to anybody.
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
