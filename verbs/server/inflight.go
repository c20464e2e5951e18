package server

import (
	"fmt"
	"net"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// inFlight are the descriptors that the service has sent on a connection, and that the client has not received yet. The kernel
// counts those of the service's user, and beyond RLIMIT_NOFILE it sends no more of them, for no client (ETOOMANYREFS). They
// stay in the client's socket, also when the service has closed its own. So they are charged as descriptors of the client's
// user until it has received all, or has closed its socket; and a connection keeps its place for as long.
type inFlight struct {
	socket  *net.UnixConn
	account *account
	n       uint64 // under connection.sendMu
}

const (
	// maxInFlight is the number of descriptors in flight on a connection. Few programs have as many requests for some at once.
	maxInFlight = 128
	// leastPacket is less than the kernel counts for a packet, with its administration.
	leastPacket = 512
	// inFlightGap is how often a connection that has ended is checked.
	inFlightGap = 100 * time.Millisecond
)

// charge charges descriptors that are about to be sent.
func (f *inFlight) charge(n int) error {
	if f.settle(); n == 0 {
		return nil
	}
	if f.n+uint64(n) > maxInFlight {
		return fmt.Errorf("%w: the client has not received %d descriptors that were sent to it; receive the replies", verbs.ErrLimit, f.n)
	}
	if err := f.account.quota.TakeDescriptors(beyondFree(f.n+uint64(n)) - beyondFree(f.n)); err != nil {
		return err
	}
	f.n += uint64(n)
	return nil
}

// beyondFree returns how many descriptors in flight are charged: not those of one message, since the connection has more of its
// own (connectionDescriptors). So no more are in flight than all users may have open.
func beyondFree(n uint64) uint64 { return max(n, proto.MaxDescriptors) - proto.MaxDescriptors }

// settle ends the charge of those that the client has received, and reports whether it has received all.
func (f *inFlight) settle() bool {
	if f.n == 0 {
		return true
	}
	left := uint64(0)
	if unread := f.unread(); unread > 0 {
		left = min(f.n, proto.MaxDescriptors+unread/leastPacket) // the first message has several, the others one
	}
	f.account.quota.GiveDescriptors(beyondFree(f.n) - beyondFree(left))
	f.n = left
	return left == 0
}

// unread returns the size of the packets that the client has not received, as the kernel counts it.
func (f *inFlight) unread() (size uint64) {
	if raw, err := f.socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if bytes, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
				size = uint64(bytes)
			}
		})
	}
	return size
}

// await waits until the client has received all, or has closed its socket. The connection has ended.
func (f *inFlight) await(hurry <-chan struct{}) {
	for !f.settle() {
		select {
		case <-time.After(inFlightGap):
		case <-hurry:
			return
		}
	}
}
