// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// Client is a session on a device of the service: a provider.Provider and a provider.CounterReader.
type Client struct {
	device   string
	conn     *proto.Conn
	socket   *net.UnixConn
	memory   shared
	doorbell *ring.Doorbell
	signals  *signals

	claimed    atomic.Bool
	fatalTold  atomic.Bool   // GetAsyncEvent has returned the event of an ended connection
	waits      chan struct{} // a place for each command that may wait
	reader     chan struct{} // a lock for requesting events
	leading    chan struct{} // a lock for reading signals
	passing    sync.Mutex    // held while a file is passed
	yielded    time.Time     // time of a leader's last yield; owned by the leader
	closing    chan struct{} // closed at the beginning of Close
	closed     chan struct{} // closed at the end of Close
	done       chan struct{} // closed by Close, or when the session has ended
	ended      chan struct{} // closed when the connection has ended: no more replies arrive
	background sync.WaitGroup

	mu      sync.Mutex
	failure error // reason for the end of the session, other than Close; written before done is closed
	lastID  uint32
	pending map[uint32]chan answer // of requests, by id
	events  map[uint64]chan struct{}
	cqs     map[provider.Handle]cq
}

// maxWaits is the maximum number of concurrent commands that may wait; the service has a limit too.
const maxWaits = 32

// answer is a Reply or a Failure.
type answer struct {
	message     proto.Message
	descriptors []int
}

// receive reads the socket until the connection ends.
func (c *Client) receive() {
	var err error
	for err == nil {
		var m proto.Message
		var descriptors []int
		if m, descriptors, err = c.conn.Receive(); err == nil {
			err = c.take(m, descriptors)
		}
	}
	c.fail(fmt.Errorf("%w: the connection to the service has ended (%w); Close, and Dial again", verbs.ErrDeviceFatal, err))
	close(c.ended)
	_ = c.socket.Close()
	c.leading <- struct{}{} // forever: done is closed
	c.signals.close()
}

// take processes a message from the service.
func (c *Client) take(m proto.Message, descriptors []int) error {
	switch m.Kind {
	case proto.Ended:
		proto.CloseAll(descriptors)
		c.fail(failureOf(m))
		return nil
	case proto.Reply, proto.Failure:
		m.Body = append([]byte(nil), m.Body...)
		c.mu.Lock()
		defer c.mu.Unlock()
		if asked := c.pending[m.ID]; asked != nil {
			delete(c.pending, m.ID)
			asked <- answer{m, descriptors} // capacity 1
		} else {
			proto.CloseAll(descriptors)
		}
		return nil
	}
	proto.CloseAll(descriptors)
	return fmt.Errorf("%w: kind %d from the service", proto.ErrMalformed, m.Kind)
}

// fail ends the session and wakes all waiting goroutines.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = cause
	}
	c.finish()
}

// finish closes done. The caller holds mu.
func (c *Client) finish() {
	if !isClosed(c.done) {
		close(c.done)
		c.signals.interrupt()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Claim implements provider.Provider.
func (c *Client) Claim() error {
	if c.claimed.Swap(true) {
		return fmt.Errorf("%w: this session on %s has a Context; Dial creates another session", verbs.ErrBusy, c.device)
	}
	return nil
}

// Doorbell implements provider.Provider.
func (c *Client) Doorbell() *ring.Doorbell { return c.doorbell }

// Done implements provider.Provider.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err implements provider.Provider.
func (c *Client) Err() error {
	if isClosed(c.closing) {
		return verbs.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// closeTimeout is the time that Close waits for the service, which sends posted requests for up to a second.
const closeTimeout = 5 * time.Second

// Close implements provider.Provider. Closing again waits for the first Close, and has no effect.
func (c *Client) Close() error {
	if !c.startClosing() {
		<-c.closed
		return nil
	}
	defer close(c.closed)
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.socket.SetWriteDeadline(time.Now().Add(closeTimeout))
	err := c.exchange(ctx, proto.Close.Untyped, &proto.None{}, &proto.None{}, true)
	if err == nil {
		err = c.keepCompletions()
	} else if errors.Is(err, verbs.ErrClosed) || isClosed(c.ended) {
		err = nil // it had ended, and the service has freed all objects
	}
	_ = c.socket.Close()
	c.background.Wait()
	return err
}

func (c *Client) startClosing() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isClosed(c.closing) {
		return false
	}
	close(c.closing)
	c.finish()
	return true
}
