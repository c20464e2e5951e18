// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// window is the maximum number of messages in flight. It is smaller than the number of posted receives.
const window = 64

// messageRoom is the space in a socket buffer, in bytes, that the kernel charges for a message of at most 1024 bytes: a
// buffer of 2048 bytes and its sk_buff.
const messageRoom = 2304

// windowOf returns the maximum number of messages in flight to a host. Over UDP sockets, the socket buffer limits it.
func windowOf(to *host) (int, error) { return windowOfPart(to, 1) }

// groupWindowOf returns the maximum number of messages in flight to a group. It is smaller than that of windowOf: the
// capture on a port has a buffer as large as a UDP socket's, which also holds messages that a host has received since
// the last update of the watch.
func groupWindowOf(to *host) (int, error) { return windowOfPart(to, 2) }

func windowOfPart(to *host, parts int) (int, error) {
	if !to.overUDP() {
		return window, nil
	}
	room, err := socketRoom()
	return windowIn(room / parts), err
}

// overUDP reports whether the host's device uses UDP sockets.
func (h *host) overUDP() bool { return cli.Network(h.Attr.XDPMode, h.Attr.AFXDPMode) == "udp" }

// windowIn returns the window for a socket buffer of room bytes.
func windowIn(room int) int { return max(1, min(window, room/messageRoom)) }

// socketRoom returns the size in bytes of the receive buffer that this process gets for a UDP socket. Without
// privileges net.core.rmem_max limits it.
func socketRoom() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 2*window*messageRoom); err != nil {
		return 0, err
	}
	return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
}
