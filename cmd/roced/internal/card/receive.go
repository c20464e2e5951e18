package card

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// RecvBuffer is the buffer of a receive that has completed.
func (e *Endpoint) RecvBuffer(wc *verbs.WC) []byte {
	start := int(wc.ID) * e.stride
	return e.mr.Bytes()[start : start+e.stride]
}

// PostRecvs posts the next n receives. Since they complete in order, these are the
// buffers of the n that completed first.
func (e *Endpoint) PostRecvs(n int) error {
	for n > 0 {
		wrs := e.recvs[e.nextRecv:min(e.nextRecv+n, len(e.recvs))]
		if err := e.QP.PostRecv(wrs); err != nil {
			return fmt.Errorf("post receive: %w", err)
		}
		e.nextRecv = (e.nextRecv + len(wrs)) % len(e.recvs)
		n -= len(wrs)
	}
	return nil
}

// Receive waits for messages. Their buffers are the caller's until it posts as many receives.
// What is counted are messages, also with an error: those that came before it.
func (e *Endpoint) Receive(ctx context.Context, sleep bool, wcs []verbs.WC) (int, error) {
	n, err := await(ctx, e.recvCQ, sleep, wcs)
	return e.messages(wcs[:n], err)
}

// Arrived takes messages that have come, without waiting; else it is receive.
func (e *Endpoint) Arrived(wcs []verbs.WC) (int, error) {
	n, err := e.recvCQ.Poll(wcs)
	return e.messages(wcs[:n], err)
}

// messages counts the completions that are messages. The others are receives that have failed,
// as when the device does: they are the last.
func (e *Endpoint) messages(wcs []verbs.WC, err error) (int, error) {
	for i := range wcs {
		if failed := wcs[i].Err(); failed != nil {
			return i, fmt.Errorf("receive: %w", e.Device.explain(failed))
		}
	}
	return len(wcs), err
}

// await waits for completions, asleep or spinning, until ctx is done: also when there
// are always some.
func await(ctx context.Context, cq *verbs.CQ, sleep bool, wcs []verbs.WC) (n int, err error) {
	err = ctx.Err()
	if sleep && err == nil {
		n, err = cq.Wait(ctx, wcs)
	}
	for !sleep && n == 0 && err == nil {
		if n, err = cq.Poll(wcs); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return n, err
}
