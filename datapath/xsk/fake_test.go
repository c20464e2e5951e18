// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// fakeKernel is the other side of a Socket's rings, all in plain memory.
type fakeKernel struct {
	t          testing.TB
	umem       []byte
	chunkSize  uint64
	rx         *producer[unix.XDPDesc]
	fill       *consumer[uint64]
	tx         *consumer[unix.XDPDesc]
	completion *producer[uint64]
}

// newFake returns a socket without a descriptor, and its kernel.
func newFake(t testing.TB, config Config) (*Socket, *fakeKernel) {
	t.Helper()
	config.Interface = 1
	config = config.withDefaults()
	layout, err := config.layout()
	if err != nil {
		t.Fatal(err)
	}
	const start = 1<<32 - 100
	s := &Socket{fd: -1, config: config, layout: layout, umem: make([]byte, layout.size())}
	k := &fakeKernel{t: t, umem: s.umem, chunkSize: layout.chunkSize}
	var rx *consumer[unix.XDPDesc]
	var fill *producer[uint64]
	var tx *producer[unix.XDPDesc]
	var completion *consumer[uint64]
	k.rx, rx = ringOn[unix.XDPDesc](layout.rxEntries, start)
	fill, k.fill = ringOn[uint64](layout.fillEntries, start)
	tx, k.tx = ringOn[unix.XDPDesc](layout.txEntries, start)
	k.completion, completion = ringOn[uint64](layout.txEntries, start)
	s.rx, s.fill, s.tx, s.completion = *rx, *fill, *tx, *completion
	s.stock()
	return s, k
}

// deliver puts a frame into the RX ring, each part into a separate chunk.
func (k *fakeKernel) deliver(parts ...[]byte) {
	k.t.Helper()
	for i, part := range parts {
		desc := k.place(part)
		if i < len(parts)-1 {
			desc.Options = unix.XDP_PKT_CONTD
		}
		k.rx.put(desc)
	}
	k.rx.publish()
}

// place copies a part into a chunk of the fill ring, after the headroom.
func (k *fakeKernel) place(part []byte) unix.XDPDesc {
	k.t.Helper()
	if k.fill.available() == 0 || k.rx.room() == 0 {
		k.t.Fatal("no chunk, or no room in the RX ring")
	}
	addr := k.fill.at(0) + unix.XDP_PACKET_HEADROOM
	k.fill.release(1)
	return unix.XDPDesc{Addr: addr, Len: uint32(copy(k.umem[addr:], part))}
}

// lie puts any descriptor, including an invalid one, into the RX ring.
func (k *fakeKernel) lie(desc unix.XDPDesc) {
	k.rx.put(desc)
	k.rx.publish()
}

// take empties the TX ring.
func (k *fakeKernel) take() []unix.XDPDesc {
	taken := make([]unix.XDPDesc, k.tx.available())
	for i := range taken {
		taken[i] = k.tx.at(uint32(i))
	}
	k.tx.release(uint32(len(taken)))
	return taken
}

func (k *fakeKernel) complete(addrs ...uint64) {
	for _, addr := range addrs {
		k.completion.put(addr)
	}
	k.completion.publish()
}
