// SPDX-License-Identifier: Apache-2.0

package link

// frames is a ring of frames.
type frames struct {
	buffers [portFrames]*[portFrameSize]byte
	long    [portFrames]*longFrame // used instead of the buffer, if not nil
	lengths [portFrames]int
	first   uint
	count   uint
	longs   *longFrames // of the network
	held    uint        // number of long frames in the ring
}

// allocate allocates all buffers in one block. The kernel provides its pages when they are first written.
func (f *frames) allocate(longs *longFrames) {
	f.longs = longs
	memory := new([portFrames][portFrameSize]byte)
	for i := range f.buffers {
		f.buffers[i] = &memory[i]
	}
}

// end returns the index after the last frame. The ring must not be full.
func (f *frames) end() uint { return (f.first + f.count) % portFrames }

// room returns the buffer after the last frame; nil if the ring is full.
func (f *frames) room() []byte {
	if f.count == portFrames {
		return nil
	}
	return f.buffers[f.end()][:]
}

// grow adds the buffer that room returned to the ring, as a frame with a length in bytes.
func (f *frames) grow(length int) {
	f.lengths[f.end()] = length
	f.count++
}

// growLong adds a long frame to the ring, which must not be full.
func (f *frames) growLong(frame *longFrame, length int) {
	f.long[f.end()] = frame
	f.held++
	f.grow(length)
}

// put adds a copy of a frame to the ring, which must not be full.
func (f *frames) put(frame []byte) {
	if len(frame) <= portFrameSize {
		f.grow(copy(f.room(), frame))
		return
	}
	long := f.longs.take()
	f.growLong(long, copy(long[:], frame))
}

// isLong reports whether the first frame is a long one.
func (f *frames) isLong() bool { return f.long[f.first] != nil }

func (f *frames) at(i uint) []byte {
	place := (f.first + i) % portFrames
	if f.held > 0 && f.long[place] != nil {
		return f.long[place][:f.lengths[place]]
	}
	return f.buffers[place][:f.lengths[place]]
}

// shrink removes the first n frames. An empty ring continues at the first buffer: the first buffers are then used most
// often, and stay in the processor's cache.
func (f *frames) shrink(n uint) {
	for i := uint(0); i < n && f.held > 0; i++ {
		if long := f.takeLong((f.first + i) % portFrames); long != nil {
			f.longs.giveBack(long)
		}
	}
	f.first = (f.first + n) % portFrames
	if f.count -= n; f.count == 0 {
		f.first = 0
	}
}

// takeLong removes and returns the long frame at an index; nil if there is none.
func (f *frames) takeLong(place uint) *longFrame {
	long := f.long[place]
	if long != nil {
		f.long[place] = nil
		f.held--
	}
	return long
}

// move moves the first frame of another ring to the end of this one. The rings swap buffers.
func (f *frames) move(from *frames) {
	end := f.end()
	f.buffers[end], from.buffers[from.first] = from.buffers[from.first], f.buffers[end]
	f.lengths[end] = from.lengths[from.first]
	if from.held > 0 && from.long[from.first] != nil {
		f.long[end] = from.takeLong(from.first)
		f.held++
	}
	f.count++
	from.shrink(1)
}
