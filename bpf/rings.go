// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// SetRing steers packets that arrive in a receive queue to the AF_XDP socket fd, which must be bound to that queue to
// receive them. Closing the socket removes the entry.
func (s *Steering) SetRing(queue, fd int) error {
	if queue < 0 || queue >= int(s.objs.Rings.MaxEntries()) || fd < 0 {
		return fmt.Errorf("set the ring of queue %d to descriptor %d: %w", queue, fd, ErrInvalid)
	}
	if err := s.objs.Rings.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set the ring of queue %d: %w", queue, err)
	}
	return nil
}

// ClearRings removes the rings of these queues. Later packets in them are dropped (DropNoRing). When ClearRings
// returns, all packets that were redirected before are in their sockets.
func (s *Steering) ClearRings(queues ...int) error {
	for _, queue := range queues {
		err := s.objs.Rings.Delete(uint32(queue))
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("clear the ring of queue %d: %w", queue, err)
		}
	}
	awaitPrograms()
	return nil
}

const (
	membarrierGlobal = 1                     // MEMBARRIER_CMD_GLOBAL
	programPause     = 20 * time.Millisecond // much longer than a run of the program and the flush after it
)

// awaitPrograms waits until all running programs have ended: membarrier(2) waits for an RCU grace period. On kernels
// with nohz_full and in some sandboxes membarrier(2) fails, and awaitPrograms sleeps.
func awaitPrograms() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(programPause)
	}
}
