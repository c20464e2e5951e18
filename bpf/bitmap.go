// SPDX-License-Identifier: Apache-2.0

package bpf

import "github.com/cilium/ebpf"

// bitmap is an array map of 64-bit words with one bit per number, and a copy of the non-zero words. The program may
// read a word while it is written, since the kernel copies 64 bits atomically.
type bitmap struct {
	kernel *ebpf.Map
	words  map[uint32]uint64
}

func newBitmap(kernel *ebpf.Map) bitmap {
	return bitmap{kernel: kernel, words: make(map[uint32]uint64)}
}

func (b *bitmap) set(bit uint32) error {
	return b.write(bit/64, b.words[bit/64]|1<<(bit%64))
}

func (b *bitmap) clear(bit uint32) error {
	return b.write(bit/64, b.words[bit/64]&^(1<<(bit%64)))
}

func (b *bitmap) write(word uint32, value uint64) error {
	if b.words[word] == value {
		return nil
	}
	if err := b.kernel.Put(word, value); err != nil {
		return err
	}
	if value == 0 {
		delete(b.words, word)
	} else {
		b.words[word] = value
	}
	return nil
}
