// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// ErrFull means that the send queue has no free slot.
var ErrFull = errors.New("all send slots are in use")

// Sends holds the requests of a send queue and their slots. Requests are numbered from 1. The number of a request is
// its ID and determines its slot, which has a buffer. Requests complete in order, so a completion also frees the slots
// of all requests before it.
//
// The functions of SendConfig, and those passed to Post, Await and Do, never run concurrently: the owner's data for
// each slot needs no lock.
type Sends struct {
	config   SendConfig
	memory   []byte    // the buffers
	own      verbs.SGE // SGE of length 0 at the beginning of the buffers
	interval uint64    // interval of signaled requests

	// polling is a lock, acquired before mu: only its holder polls the CQ, so that completions are settled in order.
	polling chan struct{}
	done    [Batch]verbs.WC // under polling

	mu       sync.Mutex
	progress Progress
	signaled uint64 // number of the last signaled request
	polled   uint64 // number of the last request at the last poll
	polledAt time.Duration
	waiting  int           // number of goroutines that wait for changed
	changed  chan struct{} // closed when completions have been settled, if goroutines wait
	requests [Batch]verbs.SendWR
	sges     [Batch]verbs.SGE
}

// SendConfig describes a send queue.
type SendConfig struct {
	Life          *Life
	MR            *verbs.MR // its last Depth × Stride bytes are the buffers
	Depth, Stride int
	CQ            *verbs.CQ
	Spin          bool // poll instead of sleeping
	// SignalLast signals the last request of each Post, so that Await can wait for it. Others are signaled at
	// intervals.
	SignalLast bool

	Post   func([]verbs.SendWR) error
	Check  func() error       // called before requests are posted; if it returns an error, they are not posted
	Settle func(wc *verbs.WC) // called for each completion
}

// Progress holds the number of the last request that was posted, and the number of the last one that is known to be
// complete.
type Progress struct{ Posted, Completed uint64 }

// Outstanding returns the number of requests that are not known to be complete.
func (p Progress) Outstanding() int { return int(p.Posted - p.Completed) }

// pollPause is the time after which Post polls even if few requests are outstanding.
const pollPause = time.Millisecond

// Start creates the slots.
func (s *Sends) Start(c SendConfig) {
	s.config = c
	all := c.MR.Bytes()
	base := len(all) - c.Depth*c.Stride
	s.memory, s.own = all[base:], c.MR.SGE(base, 0)
	s.interval = uint64(max(1, min(Batch/2, c.Depth/4)))
	s.polling, s.changed = make(chan struct{}, 1), make(chan struct{})
	for i := range s.requests {
		s.requests[i].SGList = s.sges[i : i+1]
	}
}

// Slot returns the slot of a request: 0 to Depth-1.
func (s *Sends) Slot(number uint64) int { return int(number % uint64(s.config.Depth)) }

// Buffer returns the first length bytes of a request's buffer.
func (s *Sends) Buffer(number uint64, length int) []byte {
	start := s.Slot(number) * s.config.Stride
	return s.memory[start : start+length]
}

// UseBuffer makes a request send the first length bytes of its buffer, or receive into them, and returns these bytes.
func (s *Sends) UseBuffer(wr *verbs.SendWR, length int) []byte {
	start := s.Slot(wr.ID) * s.config.Stride
	wr.SGList[0] = verbs.SGE{Addr: s.own.Addr + uint64(start), Length: uint32(length), LKey: s.own.LKey}
	return s.memory[start : start+length]
}

// Post posts up to n requests, and at most Batch. fill sets the fields of the i-th request, whose ID is set and whose
// Flags are 0. Post returns the number of requests posted, and the ID of the last one. It stops at the first error of
// fill, which it returns. ErrFull means that there were not enough free slots.
func (s *Sends) Post(now time.Duration, n int, fill func(i int, wr *verbs.SendWR) error) (posted int, last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isPollDue(now) {
		if err := s.poll(now); err != nil {
			return 0, 0, err
		}
	}
	if err := s.config.Check(); err != nil {
		return 0, 0, err
	}
	filled, err := s.fill(min(n, Batch), fill)
	posted, failed := s.submit(s.requests[:filled])
	if failed != nil {
		err = failed
	}
	return posted, s.progress.Posted, err
}

// isPollDue reports whether to poll before posting.
func (s *Sends) isPollDue(now time.Duration) bool {
	switch s.progress.Outstanding() {
	case 0:
		return false
	case s.config.Depth:
		return true
	}
	return s.progress.Posted-s.polled >= s.interval || now-s.polledAt > pollPause
}

// fill sets the fields of n requests, or of as many as there are free slots.
func (s *Sends) fill(n int, fill func(i int, wr *verbs.SendWR) error) (filled int, err error) {
	free := s.config.Depth - s.progress.Outstanding()
	for filled < n {
		if filled == free {
			return filled, ErrFull
		}
		wr := &s.requests[filled]
		wr.ID, wr.Flags = s.progress.Posted+uint64(filled)+1, 0
		if err := fill(filled, wr); err != nil {
			return filled, err
		}
		filled++
	}
	return filled, nil
}

// submit posts requests and returns the number posted.
func (s *Sends) submit(list []verbs.SendWR) (posted int, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	for i := range list {
		if wr := &list[i]; wr.ID-s.signaled >= s.interval || s.config.SignalLast && i == len(list)-1 {
			wr.Flags |= verbs.SendSignaled
			s.signaled = wr.ID
		}
	}
	if posted, err = len(list), s.config.Post(list); err != nil {
		var bad *verbs.BadWRError
		if posted = 0; errors.As(err, &bad) {
			posted = bad.Index
		}
		s.signaled = list[0].ID + uint64(posted) - s.interval // so that the next request is signaled
	}
	s.progress.Posted += uint64(posted)
	return posted, err
}

// Do calls f with the progress.
func (s *Sends) Do(f func(Progress)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.progress)
}
