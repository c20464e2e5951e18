// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// join copies the chunks of a split frame into one buffer. first is the index of the frame's first descriptor among the
// ready ones. It returns the bytes of the frame, or nil if the frame is malformed, and the number of its descriptors.
// This is 0 if the frame is incomplete, or must wait for Release because the memory for joined frames is used up.
func (s *Socket) join(first, ready uint32) (data []byte, chunks uint32) {
	chunks, length := s.measure(first, ready)
	switch {
	case chunks == 0 && ready == s.rx.size() && first == 0:
		// The frame fills the ring and has no end, so it can never be complete.
		return s.drop(first, ready)
	case chunks == 0:
		return nil, 0
	case length > uint64(cap(s.joined)):
		return s.drop(first, chunks)
	case length > uint64(cap(s.joined)-len(s.joined)):
		return nil, 0
	}
	return s.copyOut(first, chunks), chunks
}

// measure finds the last descriptor of a split frame, and returns the number of descriptors and the sum of their
// lengths. It returns zeros if the last one has not arrived yet.
func (s *Socket) measure(first, ready uint32) (chunks uint32, length uint64) {
	for i := first; i < ready; i++ {
		desc := s.rx.at(i)
		length += uint64(desc.Len)
		if desc.Options&unix.XDP_PKT_CONTD == 0 {
			return i - first + 1, length
		}
	}
	return 0, 0
}

// copyOut appends the parts of a frame to s.joined and returns the frame; nil if a part is malformed. The lengths may
// have changed since measure read them, so the capacity is checked again.
func (s *Socket) copyOut(first, chunks uint32) []byte {
	start, complete := len(s.joined), true
	for i := range chunks {
		part := s.borrow(s.rx.at(first + i))
		if part == nil || len(part) > cap(s.joined)-len(s.joined) {
			complete = false
			continue
		}
		s.joined = append(s.joined, part...)
	}
	if !complete {
		s.joined = s.joined[:start]
		return nil
	}
	return s.joined[start:len(s.joined):len(s.joined)]
}

// drop drops a frame. Its chunks are returned to the kernel at the next Release.
func (s *Socket) drop(first, chunks uint32) ([]byte, uint32) {
	for i := range chunks {
		s.borrow(s.rx.at(first + i))
	}
	return nil, chunks
}
