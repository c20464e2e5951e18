// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rc.Options{})
	ctx := guard(t)
	memory := region(t, b, 64)
	there := memory.Remote()
	check(t, a.Write(ctx, there, 8, []byte("written")))
	got := make([]byte, 9)
	check(t, a.Read(ctx, there, 7, got)) // after the write
	if string(got) != "\x00written\x00" {
		t.Errorf("%q", got)
	}
	binary.NativeEndian.PutUint64(memory.Bytes()[32:], 40)
	for _, row := range []struct {
		do   func() (uint64, error)
		want uint64
	}{
		{func() (uint64, error) { return a.FetchAdd(ctx, there, 32, 2) }, 40},
		{func() (uint64, error) { return a.CompareSwap(ctx, there, 32, 42, 7) }, 42},
		{func() (uint64, error) { return a.CompareSwap(ctx, there, 32, 42, 9) }, 7},
		{func() (uint64, error) { return a.FetchAdd(ctx, there, 32, 0) }, 7},
	} {
		if was, err := row.do(); err != nil || was != row.want {
			t.Errorf("got %d, want %d: %v", was, row.want, err)
		}
	}
	part, err := there.Slice(8, 7)
	check(t, err)
	check(t, a.Read(ctx, part, 0, got[:7]))
	if string(got[:7]) != "written" {
		t.Errorf("%q", got[:7])
	}
}

// TestRequests posts requests that use a region, in batches longer than the queue.
func TestRequests(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rc.Options{SendDepth: 8, MaxMessage: 64})
	ctx := guard(t)
	const count, size = 50, 10_000
	from, to := region(t, a, count*size), region(t, b, count*size)
	for i := range from.Bytes() {
		from.Bytes()[i] = byte(i * 7 / 3)
	}
	writes := make([]rc.Request, count)
	for i := range writes {
		writes[i] = rc.Request{Opcode: verbs.WRRDMAWrite, Region: from, Offset: i * size, Length: size, Remote: to.Remote(), RemoteOffset: i * size}
	}
	check(t, a.Do(ctx, writes...))
	if !bytes.Equal(from.Bytes(), to.Bytes()) {
		t.Error("the data read differs from the data written")
	}
	clear(from.Bytes())
	reads := writes
	for i := range reads {
		reads[i].Opcode = verbs.WRRDMARead
	}
	n, err := a.Post(ctx, reads)
	check(t, err)
	check(t, a.Flush(ctx))
	if n != count || !bytes.Equal(from.Bytes(), to.Bytes()) {
		t.Errorf("got %d posted, or the data read differs", n)
	}
	if done, left, err := a.Completed(); done != 2*count || left != 0 || err != nil {
		t.Errorf("got %d done, %d outstanding, %v", done, left, err)
	}
	sent := slices.Clone(from.Bytes()[1:61]) // before later requests change it
	check(t, a.Do(ctx,
		rc.Request{Opcode: verbs.WRSendWithImm, Region: from, Offset: 1, Length: 60, Imm: 5},
		rc.Request{Opcode: verbs.WRRDMAWriteWithImm, Region: from, Length: 100, Remote: to.Remote(), Imm: 6, Fence: true},
		rc.Request{Opcode: verbs.WRAtomicFetchAndAdd, Region: from, Offset: 8, Length: 8, Remote: to.Remote(), RemoteOffset: 16, Add: 1},
		rc.Request{Opcode: verbs.WRAtomicCmpAndSwp, Region: from, Offset: 16, Length: 8, Remote: to.Remote(), RemoteOffset: 24, Swap: 1},
		rc.Request{Opcode: verbs.WRSend},
	))
	check(t, a.Do(ctx))
	if m := receive(t, b); !bytes.Equal(m.Data, sent) || m.Imm != 5 {
		t.Errorf("%v", m)
	}
	if m := receive(t, b); !m.Written || m.Length != 100 || m.Imm != 6 || m.Data != nil {
		t.Errorf("%v", m)
	}
}

// TestChecks checks that invalid requests are refused without ending the connection.
func TestChecks(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rc.Options{MaxMessage: 64})
	ctx := guard(t)
	own, its := region(t, a, 100), region(t, b, 100)
	there := its.Remote()
	for _, row := range []struct {
		err, want error
	}{
		{a.Write(ctx, there, 90, make([]byte, 11)), rc.ErrOutside},
		{a.Write(ctx, there, -1, make([]byte, 1)), rc.ErrOutside},
		{a.Read(ctx, there, 101, nil), unix.EFAULT},
		{a.Write(ctx, there, 0, make([]byte, 65)), rc.ErrTooLong},
		{a.Read(ctx, there, 0, make([]byte, 65)), rc.ErrTooLong},
		{only(a.FetchAdd(ctx, there, 4, 1)), verbs.ErrInvalid},
		{only(a.FetchAdd(ctx, there, 96, 1)), rc.ErrOutside},
		{only(there.Slice(50, 51)), rc.ErrOutside},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWrite, Region: own, Offset: 90, Length: 11, Remote: there}), rc.ErrOutside},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWrite, Region: own, Offset: -1, Length: 1, Remote: there}), rc.ErrOutside},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWrite, Region: own, Length: 100, Remote: there, RemoteOffset: 1}), rc.ErrOutside},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWrite, Region: its, Length: 1, Remote: there}), verbs.ErrInvalid},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWrite, Length: 1, Remote: there}), verbs.ErrInvalid},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRAtomicFetchAndAdd, Region: own, Length: 4, Remote: there}), verbs.ErrInvalid},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRBindMW}), verbs.ErrInvalid},
		{a.Do(ctx, rc.Request{Opcode: verbs.WRSend, Region: own, Length: -1}), rc.ErrOutside},
	} {
		refused(t, row.err, row.want)
	}
	check(t, a.Write(ctx, there, 90, []byte("the end is")))
	check(t, a.Send(ctx, []byte("it works")))
	said(t, b, "it works")
	n, err := a.Post(ctx, []rc.Request{{Opcode: verbs.WRSend}, {Opcode: verbs.WRSend, Length: 1}, {Opcode: verbs.WRSend}})
	refused(t, err, verbs.ErrInvalid)
	if said(t, b, ""); n != 1 {
		t.Errorf("got %d posted before the invalid one", n)
	}
	check(t, a.Flush(ctx))
}

func only[T any](_ T, err error) error { return err }

// TestManyAsk runs reads and atomics in concurrent goroutines. Each call receives its own response; some are cancelled.
func TestManyAsk(t *testing.T) {
	t.Parallel()
	a, b := pair(t, rc.Options{SendDepth: 8})
	const askers, each = 6, 200
	memory := region(t, b, 8*(askers+1))
	there := memory.Remote()
	var all sync.WaitGroup
	for asker := range askers {
		all.Go(func() {
			answer := make([]byte, 8)
			for i := range uint64(each) {
				brief, cancel := context.WithCancel(guard(t))
				if i%16 == 0 {
					cancel()
				}
				if err := a.Read(brief, there, 0, make([]byte, 8)); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
				was, err := a.FetchAdd(guard(t), there, 8+8*asker, 1)
				if err == nil {
					err = a.Read(guard(t), there, 8+8*asker, answer)
				}
				if now := binary.NativeEndian.Uint64(answer); err != nil || was != i || now != i+1 {
					t.Errorf("was %d, got %d, want %d: %v", was, now, i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestWaitersWakeEachOther checks that a read completes while another goroutine waits for a message that the peer does
// not receive.
func TestWaitersWakeEachOther(t *testing.T) {
	t.Parallel()
	left, right, cut := cutWire(t)
	for _, spin := range []bool{false, true} {
		a, b := joined(t, left, right, rc.Options{Timeout: 500 * time.Millisecond, Spin: spin}, rc.Options{RecvDepth: 1})
		ctx := guard(t)
		there := region(t, b, 8).Remote()
		check(t, a.Send(ctx, []byte("first")))
		m := receive(t, b)
		outstanding := func(want int) func() bool {
			return func() bool { _, n, err := a.Completed(); return err == nil && n == want }
		}
		eventually(t, "the first message's completion", outstanding(0))
		cut(true)
		read, flushed := make(chan error, 1), make(chan error, 1)
		go func() { read <- a.Read(ctx, there, 0, make([]byte, 8)) }()
		eventually(t, "the read", outstanding(1))
		check(t, a.Send(ctx, []byte("second")))
		go func() { flushed <- a.Flush(ctx) }()
		cut(false)
		check(t, <-read)
		m.Release()
		said(t, b, "second")
		check(t, <-flushed)
	}
}
