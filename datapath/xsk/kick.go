package xsk

import "golang.org/x/sys/unix"

// KickFrames is how many descriptors one kick moves at most in copy mode (the kernel's
// TX_BATCH_SIZE).
const KickFrames = 32

// Flush hands all submitted frames to the kernel and kicks it while it sleeps and makes
// progress. It returns what the kernel has not taken then, as Unsent does; a later Flush goes
// on with it.
//
// Linux 6.1 writes down what it took only when it finds nothing more, and answers EAGAIN until
// then: as many kicks without visible progress are normal. From 6.6 on a kick ends at a
// descriptor that it passes over (see TakeBack).
func (s *Socket) Flush() (unsent uint32) {
	if s.submitted {
		s.tx.publish()
		s.submitted = false
	}
	unsent = s.tx.pending()
	passing := len(s.back.slots) > 0
	patience := unsent/KickFrames + uint32(len(s.back.slots))
	refusable := s.refused + int(unsent)
	for unsent > 0 && (s.busyPoll || s.tx.needWakeup()) {
		refused := s.refused
		again := s.kick(unix.SYS_SENDTO) || passing && s.lastKick == nil
		before := unsent
		if unsent = s.tx.pending(); unsent < before || refused < s.refused && s.refused < refusable {
			continue
		}
		if !again || patience == 0 {
			break
		}
		patience--
	}
	// Now rather than when the slots run out, so that few slots are used, and are
	// still cached.
	s.reclaim()
	if passing && unsent == 0 {
		s.settleBack()
	}
	return unsent
}

// Refused is how many frames more the interface dropped instead of sending. What is sent while
// poll(2) is called for the socket, which in copy mode sends too, is not known of.
func (s *Socket) Refused() (frames int) {
	frames, s.refused = s.refused, 0
	return frames
}

// Unsent is how many descriptors (frames, or chunks of frames that span several) were
// submitted and are not taken by the kernel yet.
func (s *Socket) Unsent() uint32 { return s.tx.pending() }

// WakeReceive makes the kernel go on receiving where it waits to be told: when the
// fill ring had run dry, and always in busy polling, where this call is what polls
// the driver.
func (s *Socket) WakeReceive() {
	if s.busyPoll || s.fill.needWakeup() {
		s.kick(unix.SYS_RECVFROM)
	}
}

// Err is what the last kick met: nil, ErrDown, ErrGone or an errno.
func (s *Socket) Err() error { return s.lastKick }

// kick is sendto(2) or recvfrom(2) of nothing. It does not block, but 32 frames take
// longer than the 20 µs after which the Go scheduler gives away the processor of
// a thread in a system call. So the scheduler is not told. It says whether the kernel
// wants to be kicked again.
func (s *Socket) kick(call uintptr) (again bool) {
	_, _, errno := unix.RawSyscall6(call, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case unix.EBUSY:
		// A frame was taken, and dropped: the interface has no carrier, or no room
		// (xsk_generic_xmit in the kernel). A kick ends with the first.
		if call == unix.SYS_SENDTO && !s.info.ZeroCopy {
			s.refused++
		}
		s.lastKick = nil
	case 0, unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
		// More to do, or a driver that is full.
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
