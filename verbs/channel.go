// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/roced/roced/verbs/provider"
)

// CompChannel is a completion channel (ibv_comp_channel), which receives the notifications of one or more CQs. A
// program arms a CQ (CQ.ReqNotify), polls it until it is empty, gets the notification, and begins again.
//
// A channel is also a file descriptor, for programs with their own poll(2) or epoll(7) loop. SyscallConn returns the
// descriptor, which is readable when there is a notification. Each record is 8 bytes, as in libibverbs' channel: the
// CQ's EventID in the machine's byte order. Records of CQs that have been closed since may be among them. End of file
// means that the card is closed or has failed.
type CompChannel struct {
	ctx     *Context
	handle  provider.Handle
	file    *os.File
	ready   <-chan struct{} // receives a value when the file may be readable; nil over the service
	reading chan struct{}   // capacity 1: full while a goroutine reads
	closed  chan struct{}
	once    sync.Once // closes closed and file
}

// CreateCompChannel creates a completion channel (ibv_create_comp_channel).
func (c *Context) CreateCompChannel() (*CompChannel, error) {
	if c == nil {
		return nil, fmt.Errorf("create completion channel: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.CreateCompChannel, provider.None{})
	if err != nil {
		return nil, fmt.Errorf("create completion channel: %w", err)
	}
	channel := &CompChannel{ctx: c, handle: grant.Channel, file: grant.Events, ready: grant.Ready, reading: make(chan struct{}, 1), closed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.channels[channel] = struct{}{}
	return channel, nil
}

const getting = "get CQ event"

// Get returns the CQ of the next notification, and waits for one until ctx is done (ibv_get_cq_event). Each
// notification must be acknowledged (CQ.AckEvents) before the CQ can be closed. Several goroutines may wait; each
// notification goes to one of them. ErrObjectClosed when the channel is closed, ErrClosed or ErrDeviceFatal when the
// card is closed or has failed.
func (c *CompChannel) Get(ctx context.Context) (*CQ, error) {
	if c == nil {
		return nil, fmt.Errorf(getting+": %w", errNil)
	}
	if err := checkContext(ctx); err != nil {
		return nil, fmt.Errorf(getting+": %w", err)
	}
	return c.next(ctx, func(cq *CQ) bool { return cq.acks.add() })
}

// next returns the CQ of the next notification that take accepts; take rejects those of closed CQs.
func (c *CompChannel) next(ctx context.Context, take func(*CQ) bool) (*CQ, error) {
	select {
	case c.reading <- struct{}{}:
	case <-c.closed:
		return nil, c.failure(getting, os.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.reading }()
	for {
		eventID, err := c.read(ctx)
		if err != nil {
			return nil, err
		}
		if cq, _ := c.ctx.eventSources.find(eventID).(*CQ); cq != nil && take(cq) {
			return cq, nil
		}
	}
}

// read reads a record. Only one goroutine reads at a time, so that each can set the file's deadline.
func (c *CompChannel) read(ctx context.Context) (eventID uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var record [8]byte
	if c.ready != nil {
		return c.readInProcess(ctx, record[:])
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.file.SetReadDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	_, err = io.ReadFull(c.file, record[:])
	if !stop() {
		<-interrupted
		_ = c.file.SetReadDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return binary.NativeEndian.Uint64(record[:]), nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, ctx.Err()
	case errors.Is(err, io.EOF):
		return 0, c.ended(ctx)
	}
	return 0, c.failure(getting, err)
}

// readInProcess is read for a card in this process. It waits for a Go channel, and therefore also works in a bubble of
// testing/synctest.
func (c *CompChannel) readInProcess(ctx context.Context, record []byte) (eventID uint64, err error) {
	for read := 0; read < len(record); {
		n, err := readNow(c.file, record[read:])
		switch {
		case n > 0:
			read += n
			continue
		case err == nil:
			return 0, c.ended(ctx)
		case !errors.Is(err, syscall.EAGAIN):
			return 0, c.failure(getting, c.causeOf(err))
		}
		select {
		case <-c.ready:
		case <-c.closed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return binary.NativeEndian.Uint64(record), nil
}

// causeOf returns os.ErrClosed if the channel is closed, because a raw connection reports that by another error.
func (c *CompChannel) causeOf(err error) error {
	select {
	case <-c.closed:
		return os.ErrClosed
	default:
		return err
	}
}

// readNow reads from a non-blocking file: EAGAIN if there is no data, and no error at the end.
func readNow(file *os.File, to []byte) (n int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlled := raw.Read(func(fd uintptr) bool {
		for n, err = syscall.Read(int(fd), to); errors.Is(err, syscall.EINTR); n, err = syscall.Read(int(fd), to) {
		}
		return true
	})
	return n, errors.Join(controlled, err)
}

// ended returns the reason why the card has closed its end: the program closes the channel, or the card is closed or
// has failed. The reason is known a moment later.
func (c *CompChannel) ended(ctx context.Context) error {
	select {
	case <-c.closed:
	case <-c.ctx.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.failure(getting, os.ErrClosed)
}

// failure returns the error of a call on the channel. doing names the operation.
func (c *CompChannel) failure(doing string, cause error) error {
	if err := c.ctx.gone(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(cause, os.ErrClosed) || errors.Is(cause, io.EOF) { // Close ends the card's end first
		return fmt.Errorf("%s: %w: the completion channel", doing, ErrObjectClosed)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrHost, cause)
}

// SyscallConn returns the descriptor to read records from; see CompChannel. A program that reads records neither calls
// Get nor acknowledges them. ErrObjectClosed after Close, ErrClosed when the context is closed.
func (c *CompChannel) SyscallConn() (syscall.RawConn, error) {
	if c == nil {
		return nil, fmt.Errorf("descriptor of a channel: %w", errNil)
	}
	select {
	case <-c.closed:
		return nil, c.failure("descriptor of a completion channel", os.ErrClosed)
	default:
		return c.file.SyscallConn()
	}
}

// Close destroys the channel (ibv_destroy_comp_channel); ErrBusy while a CQ uses it.
func (c *CompChannel) Close() error {
	if c == nil {
		return fmt.Errorf("destroy completion channel: %w", errNil)
	}
	err := provider.Exec(c.ctx.provider, provider.DestroyCompChannel, provider.DestroyCompChannelRequest{Channel: c.handle})
	if err == nil || errors.Is(err, ErrClosed) {
		c.release()
	}
	if err != nil {
		return fmt.Errorf("destroy completion channel: %w", err)
	}
	return nil
}

// release closes the program's end and ends all calls of Get.
func (c *CompChannel) release() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.file.Close()
	})
	c.ctx.mu.Lock()
	defer c.ctx.mu.Unlock()
	delete(c.ctx.channels, c)
}

// releaseChannels releases the channels that the program has not closed.
func (c *Context) releaseChannels() {
	c.mu.Lock()
	var all []*CompChannel
	for channel := range c.channels {
		all = append(all, channel)
	}
	c.mu.Unlock()
	for _, channel := range all {
		channel.release()
	}
}

// acks counts the notifications of a CQ that the program has received and not acknowledged.
type acks struct {
	mu     sync.Mutex
	owed   int
	closed bool
}

// add counts one notification, unless the CQ is closed.
func (a *acks) add() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.owed++
	return true
}

// close calls destroy if all notifications are acknowledged.
func (a *acks) close(destroy func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed > 0 {
		return fmt.Errorf("%w: %s to be acknowledged; call AckEvents first", ErrBusy, count(a.owed, "notification"))
	}
	err := destroy()
	a.closed = a.closed || err == nil
	return err
}

// AckEvents acknowledges notifications of the CQ that CompChannel.Get returned (ibv_ack_cq_events); ErrInvalid for more
// than are outstanding, ErrObjectClosed when the queue is closed. It acquires a lock, so acknowledge several at once
// where there are many.
func (q *CQ) AckEvents(n int) error {
	if q == nil {
		return fmt.Errorf("acknowledge CQ events: %w", errNil)
	}
	q.acks.mu.Lock()
	defer q.acks.mu.Unlock()
	if q.acks.closed {
		return fmt.Errorf("acknowledge %d CQ events: %w: the CQ", n, ErrObjectClosed)
	}
	if n < 0 || n > q.acks.owed {
		return fmt.Errorf("acknowledge %d CQ events: %w: it has %s to be acknowledged", n, ErrInvalid, count(q.acks.owed, "event"))
	}
	q.acks.owed -= n
	return nil
}
