// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Socket is an AF_XDP socket bound to one queue of one interface. The package comment lists the permitted callers of
// its methods.
type Socket struct {
	layout
	umem []byte

	rx        consumer[unix.XDPDesc]
	fill      producer[uint64] // addresses of chunks
	borrowed  []uint64         // addresses of the chunks that are borrowed until Release
	joined    []byte           // copies of the split frames in borrowed chunks
	malformed atomic.Uint64    // written by the owner, read by Stats

	tx         producer[unix.XDPDesc]
	completion consumer[uint64] // addresses of chunks
	free       []slot           // a stack, because the memory of the slot used last is likely to be in the cache
	owed       []uint8          // by slot: number of outstanding completions, or ownedByCaller
	inFlight   int              // number of frames with outstanding completions
	refused    int              // number of frames that the interface dropped since the last Refused
	submitted  bool             // the TX ring has unpublished entries
	back       takenBack

	fd       int // -1 before Open and after Close
	busyPoll bool
	lastKick error

	config   Config
	info     Info
	mappings [][]byte   // the rings and the UMEM
	closing  sync.Mutex // held by Stats and Close
}

// Info describes how a socket is bound.
type Info struct {
	Interface, Queue int
	ZeroCopy         bool
	MultiBuffer      bool
	// MaxUnsplit is the maximum length of a frame that is received in one chunk, in bytes, including the Ethernet
	// header. Without MultiBuffer longer frames are lost.
	MaxUnsplit int
}

// Open opens a socket in the network namespace of the calling thread and binds it. The socket receives no frames until
// an XDP program redirects frames to it. Open retries a busy queue for four seconds, because the kernel frees a queue
// only a moment after its socket is closed. The errors are listed with ErrPermission.
func Open(config Config) (*Socket, error) {
	s, err := Prepare(config)
	if err != nil {
		return nil, err
	}
	if err := s.Bind(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Prepare is Open without binding the socket, for use while another socket is bound to the queue. The caller then calls
// Bind, from any thread. Until then the socket can only be closed.
func Prepare(config Config) (*Socket, error) {
	s, err := prepare(config.withDefaults())
	if err != nil {
		return nil, config.explain(err)
	}
	return s, nil
}

func prepare(config Config) (*Socket, error) {
	layout, err := config.layout()
	if err != nil {
		return nil, err
	}
	s := &Socket{fd: -1, config: config, layout: layout}
	for _, step := range []func() error{s.create, s.setBusyPoll, s.registerMemory, s.createRings, s.mapRings} {
		if err := step(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Bind binds a socket that Prepare has returned. It retries a busy queue for four seconds, as Open does. If it fails,
// it may be called again.
func (s *Socket) Bind() error {
	err := s.bind()
	if err == nil {
		err = s.inspect()
	}
	if err != nil {
		return s.config.explain(err)
	}
	return nil
}

func (c Config) explain(err error) error {
	return fmt.Errorf("AF_XDP socket on interface %d queue %d: %w", c.Interface, c.Queue, err)
}

// FD returns the file descriptor, for an XSKMAP and for poll(2). In copy mode poll(2) also sends the frames that wait
// in the TX ring.
func (s *Socket) FD() int { return s.fd }

// Attached returns how the socket is bound.
func (s *Socket) Attached() Info { return s.info }

// Close releases the socket and its memory. Borrowed and reserved frames must not be accessed afterwards. The kernel
// frees the queue a moment later. Further calls do nothing.
func (s *Socket) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	var failed error
	if s.fd >= 0 {
		failed = unix.Close(s.fd)
		s.fd = -1
	}
	// A call after Close must dereference a nil pointer, not unmapped memory.
	s.rx, s.tx = consumer[unix.XDPDesc]{}, producer[unix.XDPDesc]{}
	s.fill, s.completion = producer[uint64]{}, consumer[uint64]{}
	s.umem = nil
	for _, mapping := range s.mappings {
		failed = errors.Join(failed, unix.Munmap(mapping))
	}
	s.mappings = nil
	return failed
}
