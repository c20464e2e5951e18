// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/roced/roced/internal/fault"

// step is a part of the teardown of a connection. It does nothing if there is nothing for it to free.
type step struct {
	name string
	run  func(*connection) error
}

// teardown are the steps that free everything that a connection has, in this order, however the connection ends. Nothing
// else frees it.
var teardown = []step{
	// The client sees the end at once. Goroutines that send to it fail, instead of blocking a later step.
	{"shut the socket down", func(c *connection) error { c.hangUp(); return nil }},
	// The watchers end the session, which is closed below.
	{"stop watching files", (*connection).stopWatchingFiles},
	// The close of a file may block, in a thread of the user. It begins early, so that it is over early.
	{"close the file socket", func(c *connection) error { c.fileSocket.Close(); return nil }},
	{"close sockets of events", (*connection).closeAllAsyncEvents},
	// Commands that wait use the session. They return when they are cancelled, or when the session is closed.
	{"cancel commands", (*connection).cancelCommands},
	{"close the session", (*connection).closeSession},
	// The card writes to the signals until the session is closed.
	{"close the signals", (*connection).closeSignals},
	// Session and signals are closed, so no goroutine waits for the card or for the client any more.
	{"await commands", func(c *connection) error { c.background.Wait(); return nil }},
	// A command that waits for events uses the view.
	{"close the view", func(c *connection) error { c.view.Close(); return nil }},
	{"release the network namespace", func(c *connection) error { return c.peer.Close() }},
	{"notify monitors", func(c *connection) error { c.server.admin.Close(c.client); return nil }},
	// The card has used the memory until the session was closed. The client can make the release block.
	{"release the memory", (*connection).releaseMemory},
	// Descriptors stay in the client's socket until it has received them, and are charged as long.
	{"await descriptors in flight", func(c *connection) error { c.out.inFlight.Await(c.server.hurry); return nil }},
	// The socket may contain files whose close blocks.
	{"close the socket", func(c *connection) error { c.place.Block(func() { _ = c.socket.Close() }); return nil }},
	// Blocking calls hold the place too, so the user's account is released after the last of them.
	{"release the place", func(c *connection) error { c.place.Release(); return nil }},
	{"await blocking calls", (*connection).awaitPlace},
}

// end frees everything that the connection has.
func (c *connection) end() { c.runAll(teardown) }

// runAll runs all steps, also those after one that fails or panics.
func (c *connection) runAll(steps []step) {
	for _, s := range steps {
		if err := fault.Call(func() error { return s.run(c) }); err != nil {
			c.log.Warn("not all that a client had could be undone", "step", s.name, "error", err)
		}
	}
}

func (c *connection) stopWatchingFiles() error {
	if c.memory != nil {
		c.memory.Stop()
	}
	return nil
}

func (c *connection) closeAllAsyncEvents() error {
	for r, a := range c.asyncEvents {
		c.closeAsyncEvents(r, a)
	}
	return nil
}

func (c *connection) cancelCommands() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.waiting.cancelAll()
	return nil
}

func (c *connection) closeSession() (err error) {
	if c.session == nil {
		return nil
	}
	if f := fault.Contain(func() { err = c.session.Close() }); f != nil {
		c.session.Faulted(f)
		return f
	}
	return err
}

func (c *connection) closeSignals() error {
	if c.signals != nil {
		c.signals.close()
	}
	return nil
}

func (c *connection) releaseMemory() error {
	if c.memory == nil {
		return nil
	}
	c.memory.Leave()
	c.place.Block(func() { c.memory.Close(!c.lost && !c.server.isClosed()) })
	return nil
}

func (c *connection) awaitPlace() error {
	select {
	case <-c.place.Left():
	case <-c.server.hurry:
		c.log.Warn("a client blocks the release of its memory, or of files that it has passed; these are left to the kernel")
	}
	return nil
}
