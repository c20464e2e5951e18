// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Statistics holds counts since Open. All fields except Malformed are the kernel's (XDP_STATISTICS in linux/if_xdp.h).
// A lost frame is counted in exactly one of RxDropped, RxRingFull and Malformed.
type Statistics struct {
	RxDropped       uint64 // frames lost for reasons other than a full RX ring
	RxRingFull      uint64 // frames lost because the RX ring was full
	RxFillRingEmpty uint64 // number of times that no chunk was free; in copy mode also counted in RxDropped
	RxInvalidDescs  uint64 // fill ring entries that the kernel refused
	TxInvalidDescs  uint64 // TX ring entries that the kernel refused
	TxRingEmpty     uint64 // number of times that the kernel found no frames to send
	Malformed       uint64 // frames with invalid RX ring entries: a bug in the kernel or a driver
}

// Add adds the counters of another socket.
func (s *Statistics) Add(other Statistics) {
	s.RxDropped += other.RxDropped
	s.RxRingFull += other.RxRingFull
	s.RxFillRingEmpty += other.RxFillRingEmpty
	s.RxInvalidDescs += other.RxInvalidDescs
	s.TxInvalidDescs += other.TxInvalidDescs
	s.TxRingEmpty += other.TxRingEmpty
	s.Malformed += other.Malformed
}

// Stats returns the counters. Any goroutine may call it. After Close it returns ErrClosed.
func (s *Socket) Stats() (Statistics, error) {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.fd < 0 {
		return Statistics{}, ErrClosed
	}
	kernel, err := getOption[unix.XDPStatistics](s.fd, unix.XDP_STATISTICS)
	if err != nil {
		return Statistics{}, fmt.Errorf("AF_XDP statistics: %w", err)
	}
	return Statistics{
		RxDropped:       kernel.Rx_dropped,
		RxRingFull:      kernel.Rx_ring_full,
		RxFillRingEmpty: kernel.Rx_fill_ring_empty_descs,
		RxInvalidDescs:  kernel.Rx_invalid_descs,
		TxInvalidDescs:  kernel.Tx_invalid_descs,
		TxRingEmpty:     kernel.Tx_ring_empty_descs,
		Malformed:       s.malformed.Load(),
	}, nil
}
