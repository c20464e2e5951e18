package link

// frames is a ring of frames.
type frames struct {
	buffers [portFrames]*[portFrameSize]byte
	lengths [portFrames]int
	first   uint
	count   uint
}

// allocate makes all buffers in one allocation. The kernel provides its pages when they are first
// written.
func (f *frames) allocate() {
	memory := new([portFrames][portFrameSize]byte)
	for i := range f.buffers {
		f.buffers[i] = &memory[i]
	}
}

// end is the place after the last frame, if the ring is not full.
func (f *frames) end() uint { return (f.first + f.count) % portFrames }

// room returns the buffer after the last frame; nil if the ring is full.
func (f *frames) room() []byte {
	if f.count == portFrames {
		return nil
	}
	return f.buffers[f.end()][:]
}

// grow adds the buffer that room returned to the ring, as a frame of this length.
func (f *frames) grow(length int) {
	f.lengths[f.end()] = length
	f.count++
}

func (f *frames) at(i uint) []byte {
	place := (f.first + i) % portFrames
	return f.buffers[place][:f.lengths[place]]
}

// shrink removes the first n frames. An empty ring starts over at the first buffers, which are
// likely in the processor's cache.
func (f *frames) shrink(n uint) {
	f.first = (f.first + n) % portFrames
	if f.count -= n; f.count == 0 {
		f.first = 0
	}
}

// move moves the first frame of another ring to the end of this one. The rings swap buffers.
func (f *frames) move(from *frames) {
	end := f.end()
	f.buffers[end], from.buffers[from.first] = from.buffers[from.first], f.buffers[end]
	f.lengths[end] = from.lengths[from.first]
	f.count++
	from.shrink(1)
}
