// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/hca/port"
	"github.com/roced/roced/verbs/hca/quota"
)

// device is the part of a card that the objects of its sessions and the goroutine that follows the host use.
type device struct {
	mu      sync.Mutex // protects the tables of the card and of its sessions, and the objects in them
	life    life       // its work: the goroutines that follow the host, and calls of Session.Close
	host    network.Host
	port    *port.Port
	engine  *datapath.Workers
	paths   *paths.Table
	manager *ids.Manager
	faults  faults
	log     *slog.Logger
	inline  bool // programs run the engine in their own threads
	marks   bool // packets of connections may be marked by switches
}

// locked calls a function under the card's lock, which is released even if the function panics.
func (d *device) locked(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
}

// faults counts and logs the panics that a card has contained, except those counted by its engine.
type faults struct {
	log    *slog.Logger
	count  atomic.Uint64
	logged atomic.Int64 // time of the last log entry; Unix time, ns
}

// faultLogPause is the minimum time between two log entries, since a peer or a program may be able to provoke a panic.
// All panics are counted.
const faultLogPause = time.Second

// add counts and logs a panic.
func (f *faults) add(cause error, about ...any) {
	f.count.Add(1)
	f.report(cause, about...)
}

// report logs a panic that the engine has counted.
func (f *faults) report(cause error, about ...any) {
	now := time.Now().UnixNano()
	last := f.logged.Load()
	if now-last < int64(faultLogPause) || !f.logged.CompareAndSwap(last, now) {
		return
	}
	if of := (*fault.Fault)(nil); errors.As(cause, &of) {
		about = append(about, "stack", string(of.Stack))
	}
	if errors.Is(cause, ErrPagesGone) {
		f.log.Warn("a program's session has ended", append(about, "error", cause)...)
		return
	}
	f.log.Error("internal error contained (please report)", append(about, "error", cause)...)
}

// ErrPagesGone is the cause when a session ends because its program has unmapped pages of memory that it had registered
// (Session.RegMapped), and the card has accessed them.
var ErrPagesGone = errors.New("the program has unmapped pages of memory that it had registered")

// owner is a session as its objects use it: it admits commands, allocates memory, and reports events. It implements
// paths.User.
type owner struct {
	device   *device
	config   SessionConfig
	internal bool              // the card's own session, which its manager uses
	entry    *datapath.Session // in the engine's tables
	events   events
	life     life         // its work: commands that work or wait without the card's lock; it fails before its card by Faulted
	payer    *quota.Quota // pays for next hops
	memory   atomic.Uint64
}

// Done implements provider.Provider and paths.User.
func (o *owner) Done() <-chan struct{} { return o.life.done }

// Err implements provider.Provider and paths.User.
func (o *owner) Err() error {
	if err := o.life.err(); err != nil {
		return err
	}
	return o.device.life.err()
}

// Payer implements paths.User.
func (o *owner) Payer() *quota.Quota { return o.payer }

// enter acquires the card's lock for a command, until leave. It fails if the session has ended or failed.
func (o *owner) enter() error {
	o.device.mu.Lock()
	err := o.Err()
	if err != nil {
		o.device.mu.Unlock()
	}
	return err
}

// enterToFree is enter for a command that frees an object, which is also allowed after the card has failed.
func (o *owner) enterToFree() error {
	o.device.mu.Lock()
	if o.life.stopped() {
		o.device.mu.Unlock()
		return verbs.ErrClosed
	}
	return nil
}

// leave releases the card's lock.
func (o *owner) leave() { o.device.mu.Unlock() }

// begin admits a command that works without the card's lock. The session is not freed before the command calls finish.
func (o *owner) begin() error {
	if err := o.enter(); err != nil {
		return err
	}
	o.life.work.Add(1)
	o.leave()
	return nil
}

func (o *owner) finish() { o.life.work.Done() }

// engine returns the engine that serves the session.
func (o *owner) engine() *datapath.Engine { return o.entry.Engine() }

// alloc allocates memory within the session's limit. The caller holds no lock, since zeroing large memory takes long.
func (o *owner) alloc(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil // a region of length 0
	}
	if most := o.config.Limits.Memory; o.memory.Add(uint64(size)) > most {
		now := o.memory.Add(-uint64(size))
		return nil, fmt.Errorf("%w: %d more bytes of memory; the session uses %d of %d bytes", verbs.ErrLimit, size, now, most)
	}
	piece, err := o.config.Memory.Alloc(size)
	if err != nil {
		o.memory.Add(-uint64(size))
		return nil, network.HostError(err)
	}
	return piece, nil
}

// release frees memory from alloc. The engine must not use it any more.
func (o *owner) release(pieces ...[]byte) {
	for _, piece := range pieces {
		if piece != nil {
			o.memory.Add(-uint64(len(piece)))
			o.config.Memory.Free(piece)
		}
	}
}
