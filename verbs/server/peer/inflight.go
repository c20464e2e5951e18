// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"net"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// InFlight counts the descriptors that the service has sent on a connection and that the client has not received yet. The
// kernel limits these for the service's user: beyond RLIMIT_NOFILE it sends no more descriptors to any client
// (ETOOMANYREFS). They stay in the client's socket even when the service has closed its own end. So they are charged to
// the client's user until the client has received them or closed its socket, and the connection keeps its place until then.
//
// The methods must not be called at the same time.
type InFlight struct {
	socket *net.UnixConn
	place  *Place
	n      uint64
}

// NewInFlight returns a counter for a connection.
func NewInFlight(socket *net.UnixConn, place *Place) *InFlight {
	return &InFlight{socket: socket, place: place}
}

const (
	// MaxInFlight is the largest number of descriptors in flight on a connection. Few programs have as many requests for
	// descriptors at once.
	MaxInFlight = 128
	// leastPacket is a lower bound of the kernel's size of a packet, including its overhead.
	leastPacket = 512
	// inFlightGap is the interval at which a connection that has ended is checked.
	inFlightGap = 100 * time.Millisecond
)

// Charge charges n descriptors that are about to be sent.
func (f *InFlight) Charge(n int) error {
	if f.settle(); n == 0 {
		return nil
	}
	if f.n+uint64(n) > MaxInFlight {
		return fmt.Errorf("%w: the client has not received %d descriptors that were sent to it; receive the replies", verbs.ErrLimit, f.n)
	}
	if err := f.place.quota.TakeDescriptors(beyondFree(f.n+uint64(n)) - beyondFree(f.n)); err != nil {
		return err
	}
	f.n += uint64(n)
	return nil
}

// beyondFree returns how many descriptors in flight are charged: not those of one message, since the connection has more of its
// own (ConnectionDescriptors). So no more are in flight than all users may have open.
func beyondFree(n uint64) uint64 { return max(n, proto.MaxDescriptors) - proto.MaxDescriptors }

// settle ends the charge of those that the client has received, and reports whether it has received all.
func (f *InFlight) settle() bool {
	if f.n == 0 {
		return true
	}
	left := uint64(0)
	if unread := f.unread(); unread > 0 {
		left = min(f.n, proto.MaxDescriptors+unread/leastPacket) // the first message has several, the others one
	}
	f.place.quota.GiveDescriptors(beyondFree(f.n) - beyondFree(left))
	f.n = left
	return left == 0
}

// unread returns the size of the packets that the client has not received, as the kernel counts it.
func (f *InFlight) unread() (size uint64) {
	if raw, err := f.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if bytes, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
				size = uint64(bytes)
			}
		})
	}
	return size
}

// Await waits until the client has received all, or has closed its socket. The connection has ended. It returns
// early when hurry is closed.
func (f *InFlight) Await(hurry <-chan struct{}) {
	for !f.settle() {
		select {
		case <-time.After(inFlightGap):
		case <-hurry:
			return
		}
	}
}
