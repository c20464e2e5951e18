package xsk

import "golang.org/x/sys/unix"

// join copies a split frame together. Its first descriptor is the one at position
// first of the ready ones. It returns the bytes and how many descriptors the frame had:
// none if it is not all there yet, or must wait for Release because the memory for
// joined frames is used up; no bytes if it is malformed.
func (s *Socket) join(first, ready uint32) (data []byte, chunks uint32) {
	chunks, length := s.measure(first, ready)
	switch {
	case chunks == 0 && ready == s.rx.size() && first == 0:
		// It fills the ring and still has no end: it never will.
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

// measure finds the last descriptor of a split frame, and sums the lengths.
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

// copyOut appends the parts of a frame to the joined ones, nil if a part is malformed.
// The lengths may have changed since they were summed, so the room is looked at again.
func (s *Socket) copyOut(first, chunks uint32) []byte {
	start, whole := len(s.joined), true
	for i := range chunks {
		part := s.borrow(s.rx.at(first + i))
		if part == nil || len(part) > cap(s.joined)-len(s.joined) {
			whole = false
			continue
		}
		s.joined = append(s.joined, part...)
	}
	if !whole {
		s.joined = s.joined[:start]
		return nil
	}
	return s.joined[start:len(s.joined):len(s.joined)]
}

// drop gives up a frame, but not its chunks.
func (s *Socket) drop(first, chunks uint32) ([]byte, uint32) {
	for i := range chunks {
		s.borrow(s.rx.at(first + i))
	}
	return nil, chunks
}
