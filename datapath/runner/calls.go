// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// calls runs a goroutine that handles the calls of other processes, for a worker that sleeps on a channel. The
// goroutine is started when the first eventfd is added.
type calls struct {
	mu     sync.Mutex // guards the fields below
	set    *epollSet  // the callers' eventfds; nil: the goroutine is not running
	byFD   map[int]func()
	ended  chan struct{} // closed when the goroutine ends
	closed bool
}

// hear adds an eventfd: the function called is called after writes to it.
func (c *calls) hear(fd int, called func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.set == nil {
		if err := c.begin(); err != nil {
			return fmt.Errorf("cannot watch the eventfds of calls: %w", err)
		}
	}
	c.byFD[fd] = called
	return c.set.addEdges(fd)
}

// begin starts the goroutine. The caller holds mu.
func (c *calls) begin() error {
	set := &epollSet{fd: -1}
	err := set.open()
	if err == nil {
		err = set.share()
	}
	if err != nil {
		set.close()
		return err
	}
	c.set, c.byFD, c.ended = set, map[int]func(){}, make(chan struct{})
	go func() {
		defer close(c.ended)
		_ = set.conn.Read(func(fd uintptr) bool { c.take(int(fd)); return false }) // until the set is closed
	}()
	return nil
}

// take calls the functions of the eventfds that were written to.
func (c *calls) take(set int) {
	var events [8]unix.EpollEvent
	for {
		n, _ := unix.EpollWait(set, events[:], 0)
		if n <= 0 {
			return
		}
		c.mu.Lock()
		for _, event := range events[:n] {
			if called := c.byFD[int(event.Fd)]; called != nil {
				called()
			}
		}
		c.mu.Unlock()
	}
}

// end stops watching an eventfd.
func (c *calls) end(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byFD[fd] != nil && !c.closed {
		c.set.remove(fd)
		delete(c.byFD, fd)
	}
}

// close ends the goroutine and waits for it.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	set := c.set
	c.mu.Unlock()
	if set != nil {
		set.close()
		<-c.ended
	}
}
