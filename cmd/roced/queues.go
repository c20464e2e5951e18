package main

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What an endpoint does with its queues: it fills and posts its buffers in turn, and takes
// what has completed.

// shape makes all messages sent from now on so long, and of this operation.
func (e *endpoint) shape(size int, opcode verbs.Opcode) {
	for i := range e.sends {
		e.sends[i].SGList[0].Length, e.sends[i].Opcode = uint32(size), opcode
	}
}

// sendBuffer is what the i-th of the next sends will send, and its request.
func (e *endpoint) sendBuffer(i int) ([]byte, *verbs.SendWR) {
	wr := &e.sends[(e.nextSend+i)%len(e.sends)]
	sge := wr.SGList[0]
	return e.mr.Bytes()[sge.Addr : sge.Addr+uint64(sge.Length)], wr
}

// fill puts a payload into all messages that will be sent.
func (e *endpoint) fill(payload []byte) {
	e.shape(len(payload), verbs.WRSend)
	for i := range e.sends {
		buffer, _ := e.sendBuffer(i)
		copy(buffer, payload)
	}
}

// recvBuffer is the buffer of a receive that has completed.
func (e *endpoint) recvBuffer(wc *verbs.WC) []byte {
	start := int(wc.ID) * e.stride
	return e.mr.Bytes()[start : start+e.stride]
}

// idle is how many sends can be posted now.
func (e *endpoint) idle() int { return len(e.sends) - e.sending }

// postSends posts the next n sends, of which the last one is signaled and its ID says for
// how many it stands.
func (e *endpoint) postSends(n int) error {
	for n > 0 {
		wrs := e.sends[e.nextSend:min(e.nextSend+n, len(e.sends))]
		last := &wrs[len(wrs)-1]
		last.ID, last.Flags = uint64(len(wrs)), verbs.SendSignaled
		err := e.qp.PostSend(wrs)
		last.Flags = 0
		if err != nil {
			return fmt.Errorf("post send: %w", err)
		}
		e.sending += len(wrs)
		e.nextSend = (e.nextSend + len(wrs)) % len(e.sends)
		n -= len(wrs)
	}
	return nil
}

// postRecvs posts the next n receives. Since they complete in order, these are the
// buffers of the n that completed first.
func (e *endpoint) postRecvs(n int) error {
	for n > 0 {
		wrs := e.recvs[e.nextRecv:min(e.nextRecv+n, len(e.recvs))]
		if err := e.qp.PostRecv(wrs); err != nil {
			return fmt.Errorf("post receive: %w", err)
		}
		e.nextRecv = (e.nextRecv + len(wrs)) % len(e.recvs)
		n -= len(wrs)
	}
	return nil
}

// reap takes the completions of sends that there are.
func (e *endpoint) reap() error {
	n, err := e.sendCQ.Poll(e.done[:])
	return e.settle(n, err)
}

// reapSome waits for completions of sends.
func (e *endpoint) reapSome(ctx context.Context, sleep bool) error {
	n, err := await(ctx, e.sendCQ, sleep, e.done[:])
	return e.settle(n, err)
}

// reapAll waits until all that was sent has completed.
func (e *endpoint) reapAll(ctx context.Context, sleep bool) error {
	return e.reapUntil(ctx, sleep, len(e.sends))
}

// reapUntil waits until n sends can be posted. That takes microseconds.
func (e *endpoint) reapUntil(ctx context.Context, sleep bool, n int) error {
	if e.idle() >= n {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	for e.idle() < n {
		if err := e.reapSome(ctx, sleep); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) settle(n int, err error) error {
	for i := range e.done[:n] {
		if err := e.done[i].Err(); err != nil {
			e.failed = true
			return fmt.Errorf("send: %w", e.device.explain(err))
		}
		e.sending -= int(e.done[i].ID)
	}
	return err
}

// closeTimeout is how long what was posted may take to leave before the queue pair is destroyed.
const closeTimeout = time.Second

// awaitSent waits until all that was posted has left. It says so if that cannot be; sends
// that have failed have been told of.
func (e *endpoint) awaitSent() error {
	cause := fmt.Errorf("not all that was posted has left within %v; is the link of %s up? %w", closeTimeout, e.device.attr.Name, unix.ETIMEDOUT)
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, cause)
	defer cancel()
	for e.sending > 0 && !e.failed {
		if err := e.reapSome(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// receive waits for messages. Their buffers are the caller's until it posts as many receives.
// What is counted are messages, also with an error: those that came before it.
func (e *endpoint) receive(ctx context.Context, sleep bool, wcs []verbs.WC) (int, error) {
	n, err := await(ctx, e.recvCQ, sleep, wcs)
	return e.messages(wcs[:n], err)
}

// arrived takes messages that have come, without waiting; else it is receive.
func (e *endpoint) arrived(wcs []verbs.WC) (int, error) {
	n, err := e.recvCQ.Poll(wcs)
	return e.messages(wcs[:n], err)
}

// isFromPeer says whether a message is from where the endpoint aims.
func (e *endpoint) isFromPeer(wc *verbs.WC) bool {
	grh, _ := wc.Payload(e.recvBuffer(wc))
	return wc.SrcQP == e.peer.QPN && grh.SGID() == e.peer.GID
}

// messages counts the completions that are messages. The others are receives that have failed,
// as when the device does: they are the last.
func (e *endpoint) messages(wcs []verbs.WC, err error) (int, error) {
	for i := range wcs {
		if failed := wcs[i].Err(); failed != nil {
			return i, fmt.Errorf("receive: %w", e.device.explain(failed))
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
