// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sys/unix"
)

// guard ensures that the service makes no page of a program's file. A program can take pages out of its file at any
// time. Without the guard, the next access to the hole would make a new page: mostly by the card, at the cost of the
// service's control group. With it the card gets a fault (SIGBUS), which ends the program's session. The kernel
// raises it for mappings that are registered with a userfaultfd (UFFD_FEATURE_SIGBUS); no process reads that.
//
// Where userfaultfd(2) is not allowed, as in some containers, the service makes pages, and logs a warning.
type guard struct {
	once sync.Once
	log  *slog.Logger
	fd   int // the userfaultfd; -1 if it cannot be used
}

// open opens the userfaultfd, once.
func (g *guard) open() {
	g.once.Do(func() {
		var err error
		if g.fd, err = openUserfaultfd(); err != nil {
			g.fd = -1
			g.log.Warn("pages that programs take out of registered memory are made again at the service's cost: userfaultfd cannot be used", "error", err)
		}
	})
}

// protect makes the absent pages of a mapping faults.
func (g *guard) protect(memory []byte) error {
	if g.open(); g.fd < 0 {
		return nil
	}
	if errno := registerMissing(g.fd, memory); errno != 0 {
		return fmt.Errorf("watch it for pages that are missing: %w", errno)
	}
	return nil
}

// close closes the userfaultfd. No file is mapped any more.
func (g *guard) close() {
	g.once.Do(func() { g.fd = -1 })
	if g.fd >= 0 {
		_ = unix.Close(g.fd)
		g.fd = -1
	}
}
