// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// window is the greatest number of messages that the demo has in flight: never more than receives are posted.
const window = 64

// messageRoom is the room in a socket that the kernel charges for a message of at most 1024 bytes: a buffer of 2048 bytes, and its
// description.
const messageRoom = 2304

// windowOf returns the number of messages that the demo has in flight to a host: over UDP sockets no more than one of them holds.
func windowOf(to *host) (int, error) { return windowOfPart(to, 1) }

// groupWindowOf is windowOf for messages to a group. The capture on a port has as much room as a UDP socket, and also holds messages
// that a host has received since the demo read the capture.
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

// windowIn is the window of a socket with so many bytes of room.
func windowIn(room int) int { return max(1, min(window, room/messageRoom)) }

// socketRoom returns the room for received packets that this process gets in a UDP socket, in bytes: without privileges it is
// limited (net.core.rmem_max).
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
