// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// read receives a packet.
func (c *Conn) read() (n, rightsLen, flags int, err error) {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return 0, 0, 0, err
	}
	c.poll.begin()
	var failed error
	err = raw.Read(func(fd uintptr) (over bool) {
		for {
			if c.peeks {
				n, _, flags, _, failed = unix.Recvmsg(int(fd), c.buffer, nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
			}
			if !c.peeks || failed == nil && flags&unix.MSG_CTRUNC == 0 {
				n, rightsLen, flags, _, failed = unix.Recvmsg(int(fd), c.buffer, c.rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
			}
			if failed != unix.EAGAIN && failed != unix.EINTR {
				return true
			}
			if failed == unix.EAGAIN && !c.poll.again() {
				return false
			}
		}
	})
	c.poll.end()
	switch {
	case err != nil:
		return 0, 0, 0, err
	case failed != nil:
		return 0, 0, 0, failed
	case n == 0:
		return 0, rightsLen, flags, io.EOF
	}
	return n, rightsLen, flags, nil
}

// poll decides whether a reader polls for the next message, or sleeps. A wake-up takes longer than most commands, so a
// reader polls for a while if messages arrive in quick succession.
type poll struct {
	start  time.Time
	soon   bool // the last message came within pollTime of being waited for
	on     bool
	missed int // polls in a row in which none came, as where the peer has no processor to run on meanwhile
	skip   int // messages that are not polled for, after such
}

const (
	pollTime = 50 * time.Microsecond
	// maxMissed bounds the cost of unsuccessful polls: then the reader polls for one in 64 messages.
	maxMissed = 7
)

// polling is set while a reader of this process polls. Only one does at a time.
var polling atomic.Bool

func (p *poll) begin() {
	p.start = time.Now()
	if p.soon && p.skip > 0 {
		p.skip--
		return
	}
	p.on = p.soon && polling.CompareAndSwap(false, true)
}

func (p *poll) again() bool {
	if !p.on {
		return false
	}
	if time.Since(p.start) > pollTime {
		p.missed = min(p.missed+1, maxMissed)
		p.skip = 1<<(p.missed-1) - 1
		p.stop()
		return false
	}
	runtime.Gosched() // to the requester, if it is in this process
	return true
}

func (p *poll) end() {
	p.soon = time.Since(p.start) < pollTime
	if p.on {
		p.missed = 0
		p.stop()
	}
}

func (p *poll) stop() {
	p.on = false
	polling.Store(false)
}
