// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// KickFrames is the maximum number of descriptors that one kick moves in copy mode (the kernel's TX_BATCH_SIZE).
const KickFrames = 32

// Flush publishes all submitted frames, and kicks the kernel as long as it needs wake-ups and makes progress. A kick is
// a sendto(2) without data. Flush returns the number of descriptors that the kernel has not consumed, as Unsent does; a
// later Flush continues with those.
//
// Linux 6.1 updates its index only when it finds no more frames to send, and returns EAGAIN until then. Some kicks
// without visible progress are therefore normal; retries limits their number. Since Linux 6.6 a kick also ends at each
// invalid descriptor (see TakeBack).
func (s *Socket) Flush() (unsent uint32) {
	if s.submitted {
		s.tx.publish()
		s.submitted = false
	}
	unsent = s.tx.pending()
	passing := len(s.back.slots) > 0
	retries := unsent/KickFrames + uint32(len(s.back.slots))
	refusable := s.refused + int(unsent)
	for unsent > 0 && (s.busyPoll || s.tx.needWakeup()) {
		refused := s.refused
		again := s.kick(unix.SYS_SENDTO) || passing && s.lastKick == nil
		before := unsent
		if unsent = s.tx.pending(); unsent < before || refused < s.refused && s.refused < refusable {
			continue
		}
		if !again || retries == 0 {
			break
		}
		retries--
	}
	// Reclaim slots now and not only when none is free, so that few slots are in use and stay in the processor's cache.
	s.reclaim()
	if passing && unsent == 0 {
		s.finishTakeBack()
	}
	return unsent
}

// Refused returns the number of frames that the interface dropped instead of sending, since the last call. In copy mode
// poll(2) on the socket sends frames too; frames that are dropped in this case are not counted.
func (s *Socket) Refused() (frames int) {
	frames, s.refused = s.refused, 0
	return frames
}

// Unsent returns the number of submitted descriptors that the kernel has not consumed yet. A frame has one descriptor
// for each of its chunks.
func (s *Socket) Unsent() uint32 { return s.tx.pending() }

// WakeReceive wakes the kernel's receiving side if required: after the fill ring was empty, and always with busy
// polling, as the call then polls the driver.
func (s *Socket) WakeReceive() {
	if s.busyPoll || s.fill.needWakeup() {
		s.kick(unix.SYS_RECVFROM)
	}
}

// Err returns the result of the last kick: nil, ErrDown, ErrGone or an errno.
func (s *Socket) Err() error { return s.lastKick }

// kick calls sendto(2) or recvfrom(2) without data. It reports whether the kernel requests another kick.
//
// The call does not block. With 32 frames it takes longer than the 20 µs after which the Go scheduler retakes the P of a
// thread in a system call. It is therefore a raw system call, which is hidden from the scheduler.
func (s *Socket) kick(call uintptr) (again bool) {
	_, _, errno := unix.RawSyscall6(call, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case unix.EBUSY:
		// The kernel dropped a frame, because the interface has no carrier or no room (xsk_generic_xmit). A kick ends
		// at the first such frame.
		if call == unix.SYS_SENDTO && !s.info.ZeroCopy {
			s.refused++
		}
		s.lastKick = nil
	case 0, unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
		// There are more frames to send, or the driver is full.
		s.lastKick = nil
	case unix.ENETDOWN:
		s.lastKick = ErrDown
	case unix.ENXIO:
		s.lastKick = ErrGone
	default:
		s.lastKick = errno
	}
	return errno == unix.EAGAIN
}
