// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// halves are the two halves of one memory: a program in C has the program's, ring the card's.
type halves struct {
	t        *testing.T
	random   *rand.Rand
	in       io.Writer
	out      *bufio.Scanner
	memory   []byte
	doorbell *ring.Doorbell
	send     *ring.SendConsumer
	recv     *ring.RecvConsumer
	cq       *ring.CompletionProducer

	sends    []ring.SendConnected // posted, and not taken
	recvs    []uint64
	received int        // receives that the card has taken, and whose completions have not been polled
	sent     int        // likewise of sends
	written  []ring.CQE // completions that have not been polled
	kept     int        // of which so many were taken out by a purge
	lastID   uint64
	rung     map[uint32]bool
	armed    ring.Arming
}

const (
	halfEntries = 8
	sendAt      = 64 << 10
	recvAt      = sendAt + 4096
	cqAt        = recvAt + 4096
	halvesSize  = cqAt + 4096
)

// TestQueues runs permitted operations of both halves in random order, and compares their views with a model.
func TestQueues(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			h := newHalves(t, seed)
			for range 3000 {
				h.step()
			}
		})
	}
}

// TestLastLook has polls find completions that are published just before the queue or the session ends.
func TestLastLook(t *testing.T) {
	t.Parallel()
	needs.Tools(t, compiler...)
	if out, err := exec.Command(glibc().alone(t, "tests/lastlook")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func newHalves(t *testing.T, seed uint64) *halves {
	needs.Tools(t, compiler...)
	dir := t.TempDir()
	h := &halves{t: t, random: rand.New(rand.NewPCG(seed, 0)), rung: map[uint32]bool{}}
	h.share(filepath.Join(dir, "memory"))
	c := exec.Command(glibc().alone(t, "tests/queueside"), filepath.Join(dir, "memory"), strconv.Itoa(sendAt), strconv.Itoa(recvAt), strconv.Itoa(cqAt))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	h.in, h.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("queueside: %v", err)
		}
	})
	return h
}

// share makes the memory. All indices begin shortly before they wrap.
func (h *halves) share(path string) {
	file, err := os.Create(path)
	if err == nil {
		defer file.Close()
		err = file.Truncate(halvesSize)
	}
	if err == nil {
		h.memory, err = unix.Mmap(int(file.Fd()), 0, halvesSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = unix.Munmap(h.memory) })
	for _, at := range []int{sendAt, recvAt, cqAt} {
		binary.LittleEndian.PutUint32(h.memory[at:], ^uint32(20))
		binary.LittleEndian.PutUint32(h.memory[at+128:], ^uint32(20))
	}
	h.doorbell = ring.NewDoorbell(h.memory)
	h.send = must(ring.NewSendConsumer(h.memory[sendAt:recvAt], ring.Geometry{Entries: halfEntries, Stride: 128}))
	h.recv = must(ring.NewRecvConsumer(h.memory[recvAt:cqAt], ring.Geometry{Entries: halfEntries, Stride: 64}))
	h.cq = must(ring.NewCompletionProducer(h.memory[cqAt:], ring.Geometry{Entries: halfEntries, Stride: 64}))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ask sends a command to the C half.
func (h *halves) ask(format string, args ...any) string {
	h.t.Helper()
	fmt.Fprintf(h.in, format+"\n", args...)
	if !h.out.Scan() {
		h.t.Fatalf("%s: the C half has ended", fmt.Sprintf(format, args...))
	}
	return h.out.Text()
}

func (h *halves) is(what, have, want string) {
	h.t.Helper()
	if have != want {
		h.t.Fatalf("%s: %s, not %s", what, have, want)
	}
}

func (h *halves) step() {
	steps := []func(){h.postSend, h.postRecv, h.takeSend, h.takeRecv, h.poll, h.poll, h.ring, h.collect, h.arm, h.purge, h.look, h.lie}
	steps[h.random.IntN(len(steps))]()
}

func (h *halves) postSend() {
	h.lastID++
	s := ring.SendConnected{ID: h.lastID, Opcode: ib.Opcode(h.random.IntN(10)), Flags: ib.SendFlags(h.random.IntN(16)), Imm: h.random.Uint32(),
		RemoteAddr: h.random.Uint64(), RKey: ib.RKey(h.random.Uint32()), SGECount: uint16(h.random.IntN(4))}
	room := len(h.sends)+h.sent < halfEntries
	h.is("post send", h.ask("S %d %d %d %d %d %d %d", s.ID, s.Opcode, s.Flags, s.Imm, s.RemoteAddr, s.RKey, s.SGECount), number(room))
	if room {
		h.sends = append(h.sends, s)
	}
}

func (h *halves) postRecv() {
	h.lastID++
	count, room := h.random.IntN(4), len(h.recvs)+h.received < halfEntries
	h.is("post receive", h.ask("R %d %d", h.lastID, count), number(room)+" 0")
	if room {
		h.recvs = append(h.recvs, h.lastID)
	}
}

// complete writes a completion; false if the queue is full.
func (h *halves) complete(id uint64, opcode ib.WCOpcode) bool {
	e := ring.CQE{ID: id, Status: ib.WCStatus(h.random.IntN(20)), Opcode: opcode, Flags: ib.WCFlags(h.random.IntN(16)), ByteLen: h.random.Uint32(),
		Imm: h.random.Uint32(), QPN: 5, SourceQP: 6, Token: 2, VendorErr: h.random.Uint32(), PKeyIndex: 9, VLAN: 77, SL: 3, Port: 1}
	if !h.cq.Put(&e) {
		if len(h.written)-h.kept < halfEntries {
			h.t.Fatalf("the card finds the CQ full, with %d of %d completions in it", len(h.written)-h.kept, halfEntries)
		}
		return false
	}
	h.cq.Publish()
	h.written = append(h.written, e)
	return true
}

func (h *halves) takeSend() {
	if h.send.Available() == 0 {
		h.is("sends", strconv.Itoa(len(h.sends)), "0")
		return
	}
	var s ring.SendConnected
	list, ok := ring.ListIn(h.send.GetConnected(0, &s), s.SGECount)
	if len(h.sends) == 0 || s != h.sends[0] || !ok {
		h.t.Fatalf("the card finds %+v, not the first of %+v", s, h.sends)
	}
	h.checkList(s.ID, list)
	if !h.complete(s.ID, ib.WCSend) {
		return
	}
	h.send.Advance(true)
	h.send.Publish()
	h.sends, h.sent = h.sends[1:], h.sent+1
}

func (h *halves) takeRecv() {
	var r ring.Recv
	if !h.recv.Peek(&r) {
		h.is("receives", strconv.Itoa(len(h.recvs)), "0")
		return
	}
	if len(h.recvs) == 0 || r.ID != h.recvs[0] {
		h.t.Fatalf("the card finds receive %d, not the first of %v", r.ID, h.recvs)
	}
	h.checkList(r.ID, r.List())
	if !h.complete(r.ID, ib.WCRecv) {
		return
	}
	h.recv.Advance()
	h.recvs, h.received = h.recvs[1:], h.received+1
}

func (h *halves) checkList(id uint64, list ring.SGList) {
	for i := uint32(0); ; i++ {
		sge, rest, ok := list.Next()
		if !ok {
			return
		}
		list = rest
		if want := (ib.SGE{Addr: id*3 + uint64(i), Length: uint32(id) + i, LKey: ib.LKey(i)}); sge != want {
			h.t.Fatalf("the card finds %+v, not %+v", sge, want)
		}
	}
}

func (h *halves) poll() {
	got := h.ask("P")
	if len(h.written) == 0 {
		h.is("poll", got, "none")
		return
	}
	e := h.written[0]
	h.is("poll", got, fmt.Sprint(e.ID, uint8(e.Status), uint8(e.Opcode), uint16(e.Flags), e.ByteLen, e.Imm, uint32(e.QPN), uint32(e.SourceQP), e.Token,
		e.VendorErr, e.PKeyIndex, e.VLAN, e.SL, e.Port))
	h.written = h.written[1:]
	h.kept = max(h.kept-1, 0)
	if e.Opcode.IsRecv() {
		h.received--
	} else {
		h.sent--
	}
}

func (h *halves) ring() {
	index, asleep := uint32(h.random.IntN(200)), h.random.IntN(2) == 0
	h.doorbell.SetAsleep(asleep)
	h.is("ring", h.ask("G %d", index), number(asleep))
	h.rung[index] = true
}

func (h *halves) collect() {
	h.doorbell.Collect(1<<16, func(index uint32) {
		if !h.rung[index] {
			h.t.Fatalf("the doorbell has bit %d, which was not rung", index)
		}
		delete(h.rung, index)
	})
	h.is("bits left", strconv.Itoa(len(h.rung)), "0")
}

func (h *halves) arm() {
	bits := []ring.Arming{ring.ArmedNext, ring.ArmedSolicited, ring.ArmedWait, ring.ArmedFutex}[h.random.IntN(4)]
	h.ask("A %d", bits)
	if h.armed |= bits; h.cq.Armed() != h.armed {
		h.t.Fatalf("the CQ is armed for %b, not %b", h.cq.Armed(), h.armed)
	}
	if h.random.IntN(2) == 0 {
		h.cq.Disarm(h.armed)
		h.armed = 0
	}
}

// purge takes all completions out of the queue, and keeps them: none has a token that is over.
func (h *halves) purge() {
	h.ask("M")
	h.kept = len(h.written)
}

func (h *halves) look() {
	want := fmt.Sprint(len(h.sends)+h.sent, len(h.sends), len(h.recvs)+h.received, len(h.written), 0, 0)
	h.is("counts", h.ask("O"), want)
}

// lie writes indices that cannot be: the C half posts nothing, polls nothing, and goes on when they can be again.
func (h *halves) lie() {
	if len(h.written) != 0 {
		return
	}
	words := []int{sendAt + 128, sendAt + 132, cqAt}
	were := make([]uint32, len(words))
	for i, at := range words {
		were[i] = binary.LittleEndian.Uint32(h.memory[at:])
		binary.LittleEndian.PutUint32(h.memory[at:], were[i]+1<<20+h.random.Uint32N(1<<20))
	}
	h.is("post send to an inconsistent queue", h.ask("S 1 2 0 0 0 0 1"), "0")
	h.is("poll of an inconsistent queue", h.ask("P"), "none")
	for i, at := range slices.Backward(words) {
		binary.LittleEndian.PutUint32(h.memory[at:], were[i])
	}
}

func number(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
