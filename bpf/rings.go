// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// SetRing steers packets that arrive on a receive queue to the AF_XDP socket fd. The socket gets
// them only if it is bound to that queue. Closing the socket removes the entry.
func (s *Steering) SetRing(queue, fd int) error {
	if queue < 0 || queue >= int(s.objs.Rings.MaxEntries()) || fd < 0 {
		return fmt.Errorf("set the ring of queue %d to descriptor %d: %w", queue, fd, ErrInvalid)
	}
	if err := s.objs.Rings.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set the ring of queue %d: %w", queue, err)
	}
	return nil
}

// ClearRings has packets that arrive on these queues dropped from now on (DropNoRing). When it returns,
// all that was redirected before is in its socket.
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
	programPause     = 20 * time.Millisecond // far longer than a program, and the flush behind it, takes
)

// awaitPrograms returns when no program runs any more that has begun before: membarrier(2) waits for an
// RCU grace period. Kernels with nohz_full, and some sandboxes, refuse it.
func awaitPrograms() {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		time.Sleep(programPause)
	}
}
