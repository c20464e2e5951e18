// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// The kernel lets a process have some ten thousand mappings (vm.max_map_count), and programs register memory in more
// pieces than that. So regions share mappings. A window is a mapping of twice a power of two, at a multiple of that
// power: of each power any part that is not longer lies in a window whole.

// span is a part of a process file, in bytes.
type span struct{ from, size uint64 }

// has reports whether another part lies in the span.
func (s *span) has(other *span) bool {
	return s.from <= other.from && other.from+other.size <= s.from+s.size
}

// window is a mapping of a part of a process file, for the regions in it.
type window struct {
	span
	memory  []byte
	regions int        // under file.mu
	present *span      // pages that a registered region has had mapped; nil: none is known; under file.mu
	tables  pageTables // under file.mu
}

const (
	// LeastWindow is half of the size of the smallest window, in bytes.
	LeastWindow = 64 << 20
	// MaxWindows is the largest number of windows of a file.
	MaxWindows = 4096
)

// spanOf returns the window that a part of a file of end bytes lies in.
func spanOf(offset uint64, length int, end uint64) span {
	half := uint64(LeastWindow)
	for half < uint64(length) {
		half *= 2
	}
	from := offset &^ (half - 1)
	return span{from, min(2*half, end-from)}
}

// pagesOf returns the whole pages of a part.
func pagesOf(offset uint64, length int) span {
	last := uint64(pageSize - 1)
	from := offset &^ last
	return span{from, (offset+uint64(length)+last)&^last - from}
}

// part returns the memory of a part of a window.
func (w *window) part(s span) []byte { return w.memory[s.from-w.from:][:s.size:s.size] }

// enter returns the window of a span for one more region.
func (f *file) enter(s span) (*window, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.windows[s]
	if w == nil {
		var err error
		if w, err = f.open(s); err != nil {
			return nil, err
		}
		f.windows[s] = w
	}
	w.regions++
	return w, nil
}

// open maps a window. The caller holds mu.
func (f *file) open(s span) (*window, error) {
	if len(f.windows) == MaxWindows {
		return nil, fmt.Errorf("%w: regions lie too far apart: they take %d mappings of the service, of %d bytes at least, and a process may have as many; register memory that lies together, or deregister some",
			verbs.ErrLimit, MaxWindows, 2*LeastWindow)
	}
	if err := f.quota.TakeMappings(1); err != nil {
		return nil, err
	}
	memory, err := f.mapWindow(s)
	if err != nil {
		f.quota.GiveMappings(1)
		return nil, fmt.Errorf("%w: a mapping of a program's memory: %w", verbs.ErrLimit, err)
	}
	return &window{span: s, memory: memory, tables: newPageTables(memory)}, nil
}

func (f *file) mapWindow(s span) ([]byte, error) {
	memory, err := unix.Mmap(f.fd, int64(s.from), int(s.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	if err := unix.Madvise(memory, unix.MADV_DONTDUMP); err != nil {
		return nil, errors.Join(err, unix.Munmap(memory))
	}
	if err := f.guard.protect(memory); err != nil {
		return nil, errors.Join(err, unix.Munmap(memory))
	}
	return memory, nil
}

// leave ends the use of a window by the region with these pages. The last region that leaves unmaps the window.
func (f *file) leave(w *window, pages *span) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.present == pages {
		w.present = nil
	}
	if w.regions--; w.regions == 0 {
		delete(f.windows, w.span)
		_ = unix.Munmap(w.memory)
		f.quota.GiveMappings(1)
		w.tables.release(f.quota)
	}
}

// populateStep is the number of bytes that are populated at once: meanwhile the kernel delays other mappings of the process.
const populateStep = 2 << 20

// populate maps a region's pages. Repeating it for pages that are mapped takes half of the time of a registration, so
// a window stores which pages its largest region has.
func (f *file) populate(w *window, pages *span) error {
	f.mu.Lock()
	present, err := w.present, w.tables.charge(f.quota, pages.from-w.from, pages.size)
	f.mu.Unlock()
	switch {
	case err != nil:
		return err
	case present != nil && present.has(pages):
		return nil
	}
	if err := populate(w.part(*pages)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.present == nil || w.present.size < pages.size {
		w.present = pages
	}
	return nil
}

// populate maps pages in advance, so that the card does not wait for the kernel.
func populate(memory []byte) error {
	for len(memory) > 0 {
		step := memory[:min(len(memory), populateStep)]
		switch err := unix.Madvise(step, unix.MADV_POPULATE_WRITE); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EFAULT):
			return fmt.Errorf("%w: some of the pages are not in the file (%w); touch all before you register them", unix.EFAULT, verbs.ErrInvalid)
		case err != nil:
			return fmt.Errorf("%w: populate: %w", verbs.ErrLimit, err)
		default:
			memory = memory[len(step):]
		}
	}
	return nil
}
