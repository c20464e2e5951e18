// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// signals are the program's end of the socket pair by which the card wakes it, the eventfd by which it wakes the card,
// and the eventfd that interrupts the leader. The runtime's poller does not watch them, so that a wake-up reaches only
// the waiting thread.
type signals struct {
	file, calls, interrupts *os.File
	raw                     syscall.RawConn // of file
	rawCalls                syscall.RawConn // of calls

	// Owned by the leader.
	wait    func(fd uintptr) // poll, made once
	timeout int              // of wait, in ms, or forEver
	records [4096]byte
	kept    int  // bytes of an incomplete record
	ended   bool // the service has closed its end
}

// newSignals takes ownership of the socket and the eventfd. It sets the blocking mode of the socket, which no other
// process has.
func newSignals(fd, calls int) (*signals, error) {
	_ = unix.SetNonblock(fd, false)
	s := &signals{file: os.NewFile(uintptr(fd), "signals"), calls: os.NewFile(uintptr(calls), "calls"), timeout: forEver}
	interrupts, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil {
		s.interrupts = os.NewFile(uintptr(interrupts), "interrupts")
		s.raw, err = s.file.SyscallConn()
	}
	if err == nil {
		s.rawCalls, err = s.calls.SyscallConn()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%w: signals: %w", verbs.ErrHost, err)
	}
	s.wait = func(fd uintptr) { s.poll(int32(fd), int32(interrupts)) }
	return s, nil
}

func (s *signals) close() {
	_ = s.file.Close()
	_ = s.calls.Close()
	if s.interrupts != nil {
		_ = s.interrupts.Close()
	}
}

// interrupt ends the leader's present wait, or the next one.
func (s *signals) interrupt() { _, _ = s.interrupts.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// forEver means no timeout.
const forEver = -1

// poll sleeps until there is a signal of the card, an interrupt, or the timeout.
func (s *signals) poll(fd, interrupts int32) {
	set := [2]unix.PollFd{{Fd: fd, Events: unix.POLLIN}, {Fd: interrupts, Events: unix.POLLIN}}
	if s.ended {
		set[0].Fd = -1
	}
	_, _ = unix.Poll(set[:], s.timeout)
	if set[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(int(interrupts), count[:])
	}
	if set[0].Revents != 0 {
		n, _, err := unix.Recvfrom(int(fd), s.records[s.kept:], unix.MSG_DONTWAIT)
		s.kept += max(n, 0)
		s.ended = n == 0 && err == nil
	}
}

// take processes the received events.
func (s *signals) take(notify func(eventID uint64)) {
	whole := s.kept &^ 7
	for at := 0; at < whole; at += 8 {
		notify(binary.LittleEndian.Uint64(s.records[at:]))
	}
	s.kept = copy(s.records[:], s.records[whole:s.kept])
}

// Wake implements provider.Provider.
func (c *Client) Wake() { _ = c.signals.rawCalls.Write(writeOne) }

func writeOne(fd uintptr) (done bool) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1) // the counter accumulates and is never read
	_, _ = unix.Write(int(fd), one[:])
	return true
}
