package server

import (
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sys/unix"
)

// holes sees to it that the service makes no page of a process file. A program can take pages out of its file at any
// time. Without this, whoever touches the hole next would make a new page: mostly the card, at the cost of the
// service's control group. With it the card meets a fault (SIGBUS), which costs the program its session. The kernel
// does that for mappings that a userfaultfd watches, without anybody who reads it (UFFD_FEATURE_SIGBUS).
//
// Where userfaultfd(2) is not allowed, as in some containers, the service makes pages, and says so in its log.
type holes struct {
	once sync.Once
	log  *slog.Logger
	fd   int // the userfaultfd; -1: there is none
}

// watch begins to watch, once.
func (h *holes) watch() {
	h.once.Do(func() {
		var err error
		if h.fd, err = openUserfaultfd(); err != nil {
			h.fd = -1
			h.log.Warn("pages that programs take out of registered memory are made again at the service's cost: userfaultfd cannot be used", "error", err)
		}
	})
}

// guard has the pages of a mapping that are not in the file be faults.
func (h *holes) guard(memory []byte) error {
	if h.watch(); h.fd < 0 {
		return nil
	}
	if errno := registerMissing(h.fd, memory); errno != 0 {
		return fmt.Errorf("watch it for pages that are missing: %w", errno)
	}
	return nil
}

// guards says whether mappings are watched.
func (h *holes) guards() bool {
	h.watch()
	return h.fd >= 0
}

// close ends it. Nothing is mapped any more.
func (h *holes) close() {
	h.once.Do(func() { h.fd = -1 })
	if h.fd >= 0 {
		_ = unix.Close(h.fd)
		h.fd = -1
	}
}
