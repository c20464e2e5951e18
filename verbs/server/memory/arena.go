// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// Arena is the shared memory of a session, an hca.Memory: a memfd that the client has mapped too, of which most
// is never touched and takes no pages. It is cut from the front, in whole pages. A page that was used
// stays, is zeroed when it is used again, and counts against the quota until the session ends.
type Arena struct {
	quota  *quota.Quota
	fd     int
	memory []byte

	mu     sync.Mutex
	top    int           // bytes at the front that have pages
	free   []extent      // ordered, none next to another
	pieces map[*byte]int // offsets of allocated pieces, by their first byte
}

// extent is a part of the arena, in bytes.
type extent struct{ from, to int }

// MaxArena is the size of an arena in bytes, unless the user's limit of memory is lower.
const MaxArena = 16 << 30

var pageSize = os.Getpagesize()

// wholePages returns the bytes of the pages that a size takes.
func wholePages(size int) int { return (size + pageSize - 1) &^ (pageSize - 1) }

// newArena makes the arena of a session. The user may have limit bytes in all sessions together; 0 is no limit.
func newArena(quota *quota.Quota, limit uint64) (*Arena, error) {
	size := MaxArena
	if limit > 0 && limit < MaxArena {
		size = wholePages(int(limit))
	}
	fd, memory, err := newMemfd(size)
	if err != nil {
		return nil, fmt.Errorf("%w: memory of a session: %w", verbs.ErrHost, err)
	}
	return &Arena{quota: quota, fd: fd, memory: memory, free: []extent{{0, size}}, pieces: map[*byte]int{}}, nil
}

// FD returns the descriptor of the memfd.
func (a *Arena) FD() int { return a.fd }

// Size returns the size of the memfd in bytes.
func (a *Arena) Size() int { return len(a.memory) }

// Alloc implements hca.Memory.
func (a *Arena) Alloc(size int) ([]byte, error) {
	piece, fresh, err := a.cut(size)
	if err != nil {
		return nil, err
	}
	clear(piece[:len(piece)-len(fresh)])
	if len(fresh) == 0 {
		return piece[:size], nil
	}
	if err := unix.Madvise(fresh, unix.MADV_POPULATE_WRITE); err != nil {
		a.Free(piece)
		return nil, fmt.Errorf("%w: %d bytes of memory: %w", verbs.ErrLimit, size, kernel.Explain(err, "the service"))
	}
	return piece[:size], nil
}

// cut allocates from the first free extent that is long enough, in whole pages. The pages of fresh, at the end of the piece,
// have never been used.
func (a *Arena) cut(size int) (piece, fresh []byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	length := wholePages(size)
	i := slices.IndexFunc(a.free, func(e extent) bool { return e.to-e.from >= length })
	if i < 0 {
		return nil, nil, a.noRoom(size)
	}
	from := a.free[i].from
	to := from + length
	if to > a.top {
		if err := a.quota.TakeMemory(uint64(to - a.top)); err != nil {
			return nil, nil, err
		}
		fresh = a.memory[max(from, a.top):to]
		a.top = to
	}
	if a.free[i].from = to; to == a.free[i].to {
		a.free = slices.Delete(a.free, i, i+1)
	}
	piece = a.memory[from:to:to]
	a.pieces[&piece[0]] = from
	return piece, fresh, nil
}

// noRoom returns the error that a piece does not fit. The arena is as large as the user's limit, or MaxArena.
func (a *Arena) noRoom(size int) error {
	left, longest := 0, 0
	for _, e := range a.free {
		left, longest = left+e.to-e.from, max(longest, e.to-e.from)
	}
	whose := "a session has room for"
	if len(a.memory) < MaxArena {
		whose = "the user may have"
	}
	return fmt.Errorf("%w: %d bytes of memory asked for, in whole pages %d; %s %d, of which this program uses %d and has %d left, at most %d in one piece",
		verbs.ErrLimit, size, wholePages(size), whose, len(a.memory), len(a.memory)-left, left, longest)
}

// Free implements hca.Memory.
func (a *Arena) Free(memory []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.pieces[&memory[0]]
	delete(a.pieces, &memory[0])
	a.release(extent{from, from + wholePages(len(memory))})
}

// release makes an extent free, and joins it with adjacent ones.
func (a *Arena) release(e extent) {
	i, _ := slices.BinarySearchFunc(a.free, e.from, func(f extent, from int) int { return f.from - from })
	if i < len(a.free) && a.free[i].from == e.to {
		e.to = a.free[i].to
		a.free = slices.Delete(a.free, i, i+1)
	}
	if i > 0 && a.free[i-1].to == e.from {
		a.free[i-1].to = e.to
		return
	}
	a.free = slices.Insert(a.free, i, e)
}

// PlaceOf implements proto.Memory.
func (a *Arena) PlaceOf(memory []byte) (proto.Place, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(memory) > 0 {
		if from, ok := a.pieces[&memory[0]]; ok {
			return proto.Place{Offset: uint64(from), Length: uint64(len(memory))}, nil
		}
	}
	return proto.Place{}, fmt.Errorf("%w: memory of a grant is not of the session's arena", proto.ErrMalformed)
}

// At implements proto.Memory. It fails, since clients send no places.
func (a *Arena) At(proto.Place) ([]byte, error) {
	return nil, fmt.Errorf("%w: a client grants no memory", proto.ErrMalformed)
}

// blocks returns the number of blocks that the memfd has.
func (a *Arena) blocks() (int64, error) {
	var s unix.Stat_t
	err := unix.Fstat(a.fd, &s)
	return s.Blocks, err
}

// close unmaps the memory, and ends its charge. The session has been closed. With remove it first returns the pages to
// the kernel, also those that the client still has mapped; without, the client can still poll the remaining completions.
// The client can hold the file's lock, by a write from memory of its own that is absent, and so make this wait, even for
// longer than a signal can interrupt.
func (a *Arena) close(remove bool) {
	if remove && a.top > 0 {
		_ = unix.Madvise(a.memory[:a.top], unix.MADV_REMOVE)
	}
	_ = unix.Munmap(a.memory)
	_ = unix.Close(a.fd)
	a.quota.GiveMemory(uint64(a.top))
}
