// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"
	"unsafe"
)

func TestAllocIsAlignedAndZero(t *testing.T) {
	for size := range 1000 {
		memory := Alloc(size)
		if len(memory) != size || cap(memory) != size {
			t.Fatalf("%d bytes, capacity %d, want %d", len(memory), cap(memory), size)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(memory))); at%128 != 0 {
			t.Errorf("%d bytes at %#x", size, at)
		}
		for i := range memory {
			if memory[i] != 0 {
				t.Fatalf("byte %d is %d", i, memory[i])
			}
			memory[i] = 0xFF
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	sends, takes, _ := sendEnds(t, SendGeometry(testEntries, 1, 0), 0)
	posts, peeks, _ := recvEnds(t, RecvGeometry(testEntries, 1), 0)
	puts, polls, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	d, _ := newDoorbell()
	var s Send
	var r Recv
	var e CQE
	work := func(uint32) {}
	for name, pass := range map[string]func(){
		"send": func() {
			PutSGE(sends.Put(&testSend), testSGEs[0])
			sends.Publish()
			for takes.Available() > 0 {
				takes.Get(&s)
				takes.Advance(false)
			}
			takes.Publish()
			sends.Outstanding(0)
		},
		"receive": func() {
			posts.Put(1, testSGEs[:1])
			posts.Publish()
			for peeks.Peek(&r) {
				peeks.Advance()
			}
		},
		"completion": func() {
			puts.Put(&testCQE)
			puts.Publish()
			takeArmed(puts, true)
			for polls.Available(1) > 0 {
				polls.Get(&e)
			}
			polls.Publish()
			polls.Arm(false)
		},
		"doorbell": func() {
			d.Ring(1)
			d.Collect(MaxQueuePairs, work)
		},
	} {
		if n := testing.AllocsPerRun(100, pass); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
