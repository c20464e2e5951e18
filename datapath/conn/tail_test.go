// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
)

func TestTailSize(t *testing.T) {
	memory := ring.Alloc(64)
	for _, test := range []struct{ from, to, size int }{
		{0, 8, 8}, {0, 64, 8}, {7, 16, 8}, {8, 16, 8}, {9, 16, 4}, {12, 16, 4}, {13, 16, 2}, {15, 16, 1},
		{0, 12, 4}, {0, 4, 4}, {0, 6, 2}, {0, 2, 2}, {1, 2, 1}, {0, 1, 1}, {0, 7, 1}, {3, 63, 1},
	} {
		if size := tailSize(memory[test.from:test.to]); size != test.size {
			t.Errorf("bytes %d to %d: one store writes %d, want %d", test.from, test.to, size, test.size)
		}
	}
}

// A program that polls the last byte of a message and then writes its reply to the same place, as riostream does, does
// not have its reply overwritten.
func TestLastByteIsStoredOnce(t *testing.T) {
	for _, length := range []int{1, 2, 7, 8, 24, 63, 64} {
		t.Run(fmt.Sprint(length, " bytes"), func(t *testing.T) { answerInPlace(t, length) })
	}
}

// answerInPlace answers as many WRITEs as it can in a fixed time.
func answerInPlace(t *testing.T, length int) {
	var answers atomic.Int64
	memory, payload := ring.Alloc(length), make([]byte, length)
	last, over, begun := memory[length-1:], make(chan struct{}), time.Now()
	answer := func(n int64) byte { return byte(2*n + 2) }
	var program sync.WaitGroup
	program.Go(func() {
		for n := int64(0); ; n++ {
			for byteOf(last) != answer(n)-1 {
				select {
				case <-over:
					return
				default:
				}
			}
			writeTail(last, []byte{answer(n)})
			answers.Store(n + 1)
		}
	})
	var r Responder
	for n := int64(0); n < 50_000 && time.Since(begun) < 50*time.Millisecond && !t.Failed(); n++ {
		payload[length-1] = answer(n) - 1
		r.writeEnd(memory, payload)
		for answers.Load() == n {
			runtime.Gosched()
		}
		if b := byteOf(last); b != answer(n) {
			t.Errorf("the response %d was overwritten with %d, at WRITE %d", answer(n), b, n)
		}
	}
	close(over)
	program.Wait()
}

func byteOf(memory []byte) byte {
	var b [1]byte
	readRemote(b[:], memory)
	return b[0]
}
