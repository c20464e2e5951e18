// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// joinedSize is the maximum total length of the split frames of one burst, in bytes. It is sufficient for 28 frames of
// 9000 bytes, and for the longest single frame that the kernel can produce.
const joinedSize = 256 << 10

// create opens the socket. The functions below are the steps of Open, in order.
func (s *Socket) create() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	switch err {
	case nil:
		s.fd = fd
		return nil
	case unix.EPERM:
		return ErrPermission
	case unix.EAFNOSUPPORT:
		return ErrUnsupported
	}
	return fmt.Errorf("socket: %w", err)
}

func (s *Socket) setBusyPoll() error {
	if s.config.BusyPoll == 0 {
		return nil
	}
	s.busyPoll = true
	options := []struct{ option, value int }{
		{unix.SO_PREFER_BUSY_POLL, 1},
		{unix.SO_BUSY_POLL, int(s.config.BusyPoll.Microseconds())},
		{unix.SO_BUSY_POLL_BUDGET, s.config.BusyPollBudget},
	}
	if s.config.BusyPollBudget == 0 {
		options = options[:2]
	}
	for _, o := range options {
		err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, o.option, o.value)
		if err == unix.EPERM {
			return ErrBusyPoll
		}
		if err != nil {
			return fmt.Errorf("busy polling (socket option %d): %w", o.option, err)
		}
	}
	return nil
}

// registerMemory allocates the UMEM and registers it with the kernel.
func (s *Socket) registerMemory() error {
	umem, err := s.mmap(-1, 0, s.size(), unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map %d KiB of UMEM: %w", s.size()>>10, err)
	}
	s.umem = umem
	// Huge pages reduce the number of pages to allocate and pin, which takes most of the time of Open. They are
	// optional.
	_ = unix.Madvise(umem, unix.MADV_HUGEPAGE)
	err = setOption(s.fd, unix.XDP_UMEM_REG, unix.XDPUmemReg{
		Addr: address(umem),
		Len:  s.size(),
		Size: uint32(s.chunkSize),
	})
	if err == unix.ENOBUFS {
		return fmt.Errorf("%w: raise the limit (LimitMEMLOCK=, ulimit -l) by %d KiB or grant CAP_IPC_LOCK",
			ErrLockedMemory, s.size()>>10)
	}
	if err != nil {
		return fmt.Errorf("register %d KiB of UMEM: %w", s.size()>>10, err)
	}
	return nil
}

func (s *Socket) createRings() error {
	for _, ring := range []struct {
		option  int
		entries uint32
	}{
		{unix.XDP_RX_RING, s.rxEntries},
		{unix.XDP_TX_RING, s.txEntries},
		{unix.XDP_UMEM_FILL_RING, s.fillEntries},
		{unix.XDP_UMEM_COMPLETION_RING, s.txEntries},
	} {
		if err := setOption(s.fd, ring.option, ring.entries); err != nil {
			return fmt.Errorf("ring of %d entries (XDP socket option %d): %w", ring.entries, ring.option, err)
		}
	}
	return nil
}

// mapRings maps the four rings and puts all chunks for receiving into the fill ring.
func (s *Socket) mapRings() error {
	offsets, err := getOption[unix.XDPMmapOffsets](s.fd, unix.XDP_MMAP_OFFSETS)
	if err != nil {
		return fmt.Errorf("ring offsets: %w", err)
	}
	rx, rxErr := mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_RX_RING, offsets.Rx, s.rxEntries)
	tx, txErr := mapRing[unix.XDPDesc](s, unix.XDP_PGOFF_TX_RING, offsets.Tx, s.txEntries)
	fill, fillErr := mapRing[uint64](s, unix.XDP_UMEM_PGOFF_FILL_RING, offsets.Fr, s.fillEntries)
	completion, completionErr := mapRing[uint64](s, unix.XDP_UMEM_PGOFF_COMPLETION_RING, offsets.Cr, s.txEntries)
	for _, err := range []error{rxErr, txErr, fillErr, completionErr} {
		if err != nil {
			return err
		}
	}
	s.rx = consumerIn[unix.XDPDesc](rx, s.rxEntries)
	s.tx = producerIn[unix.XDPDesc](tx, s.txEntries)
	s.fill = producerIn[uint64](fill, s.fillEntries)
	s.completion = consumerIn[uint64](completion, s.txEntries)
	s.stock()
	return nil
}

// stock puts all chunks for receiving into the fill ring, and marks all slots for sending as free.
func (s *Socket) stock() {
	s.borrowed = make([]uint64, 0, s.rxChunks)
	if s.config.MultiBuffer {
		s.joined = make([]byte, 0, joinedSize)
	}
	for i := range uint64(s.rxChunks) {
		s.fill.put(i * s.chunkSize)
	}
	s.fill.publish()
	s.owed = make([]uint8, s.txSlots)
	s.free = make([]slot, s.txSlots)
	for i := range s.free {
		s.free[i] = slot(len(s.free) - 1 - i)
	}
}

func mapRing[T any](s *Socket, page int64, offsets unix.XDPRingOffset, entries uint32) (ringMemory, error) {
	mapping, err := s.mmap(s.fd, page, ringLength[T](offsets, entries), unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ringMemory{}, fmt.Errorf("map ring of %d entries at page offset %#x: %w", entries, page, err)
	}
	return ringMemory{mapping, offsets}, nil
}

// mmap maps memory that Close unmaps.
func (s *Socket) mmap(fd int, offset int64, length uint64, flags int) ([]byte, error) {
	mapping, err := unix.Mmap(fd, offset, int(length), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err == nil {
		s.mappings = append(s.mappings, mapping)
	}
	return mapping, err
}
