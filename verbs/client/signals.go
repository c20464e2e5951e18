package client

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// signals is the program's end of the socket pair by which program and card wake each other.
type signals struct {
	file *os.File
	raw  syscall.RawConn
}

// newSignals takes the end. Whether it blocks is for this side to set: nobody else has it.
func newSignals(fd int) (*signals, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	file := os.NewFile(uintptr(fd), "signals")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return &signals{file, raw}, nil
}

// Wake implements verbs.Provider. If the socket is full, the daemon is being woken already.
func (c *Client) Wake() { _ = c.signals.raw.Write(sendByte) }

func sendByte(fd uintptr) (done bool) {
	_ = unix.Sendto(int(fd), []byte{1}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	return true
}

// listen hands events of CQs on to those who wait for them.
func (c *Client) listen() {
	var records [4096]byte
	for kept := 0; ; { // bytes of a record that has not come whole
		n, err := c.signals.file.Read(records[kept:])
		if err != nil {
			return
		}
		whole := (kept + n) &^ 7
		for at := 0; at < whole; at += 8 {
			c.notify(binary.LittleEndian.Uint64(records[at:]))
		}
		kept = copy(records[:], records[whole:kept+n])
	}
}

func (c *Client) notify(eventID uint64) {
	c.mu.Lock()
	events := c.events[eventID]
	c.mu.Unlock()
	select {
	case events <- struct{}{}: // never to nil: the queue has been destroyed
	default:
	}
}
