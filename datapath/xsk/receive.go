// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// Received is a frame from the wire.
type Received struct {
	// Data is the frame from the Ethernet header on, borrowed until Release.
	Data []byte
}

// Receive removes at most len(burst) frames from the RX ring and returns their number. It never blocks. The caller must
// call Release before the next Receive.
func (s *Socket) Receive(burst []Received) int {
	// borrowed has room for every chunk; more can be available only if the kernel's index is invalid.
	ready := min(s.rx.available(), uint32(cap(s.borrowed)-len(s.borrowed)))
	frames, taken := 0, uint32(0)
	for frames < len(burst) && taken < ready {
		var data []byte
		chunks := uint32(1)
		if desc := s.rx.at(taken); desc.Options&unix.XDP_PKT_CONTD == 0 {
			data = s.borrow(desc)
		} else if data, chunks = s.join(taken, ready); chunks == 0 {
			break
		}
		taken += chunks
		if data == nil {
			s.malformed.Add(1)
			continue
		}
		burst[frames].Data = data
		frames++
	}
	if taken > 0 {
		s.rx.release(taken)
	}
	return frames
}

// borrow returns the bytes of a descriptor; nil if it is not inside a chunk for receiving.
func (s *Socket) borrow(desc unix.XDPDesc) []byte {
	offset := desc.Addr & (s.chunkSize - 1)
	end := desc.Addr + uint64(desc.Len)
	if desc.Addr >= s.rxSize() || offset+uint64(desc.Len) > s.chunkSize {
		return nil
	}
	s.borrowed = append(s.borrowed, desc.Addr-offset)
	return s.umem[desc.Addr:end:end]
}

// Waiting returns the number of chunks in the RX ring.
func (s *Socket) Waiting() uint32 { return s.rx.available() }

// Release returns all frames received so far to the kernel.
func (s *Socket) Release() {
	if len(s.borrowed) == 0 {
		return
	}
	// The ring has an entry for every chunk. It lacks room only if its index is invalid.
	for _, chunk := range s.borrowed[:min(len(s.borrowed), int(s.fill.room()))] {
		s.poison(chunk, s.chunkSize)
		s.fill.put(chunk)
	}
	s.fill.publish()
	s.borrowed = s.borrowed[:0]
	s.joined = s.joined[:0]
}
