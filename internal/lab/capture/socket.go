// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// receiveBuffer is the size of the socket's buffer in bytes: a few thousand frames.
const receiveBuffer = 16 << 20

// Frame is a captured Ethernet frame.
type Frame struct {
	Data       []byte     // from a Socket: valid until its next frame
	Outgoing   bool       // sent by the link, not received
	Unfinished Unfinished // work left to the host or a NIC before the frame is on a wire
}

// Packets returns the packets that the frame would become on a wire; see Unfinished.Packets.
func (f *Frame) Packets() ([][]byte, error) { return f.Unfinished.Packets(f.Data) }

// Socket captures the frames of a link from Open on.
type Socket struct {
	fd     int
	frame  []byte
	trains int // number of unreadable trains since the last call of complete
}

// Open starts capturing on a link of a namespace.
func Open(ns *lab.Namespace, link string) (*Socket, error) {
	s := &Socket{fd: -1, frame: make([]byte, VnetHeaderLen+1<<17)}
	index, err := ns.Index(link)
	if err != nil {
		return nil, err
	}
	if err := ns.Do(func() error { return s.open(index) }); err != nil {
		return nil, errors.Join(fmt.Errorf("capture on %s in %s: %w", link, ns.Name(), err), s.Close())
	}
	return s, nil
}

// open runs inside the namespace. The socket has no protocol, so it captures nothing until it is bound to the
// link.
func (s *Socket) open(index int) (err error) {
	s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	if errors.Is(err, unix.EPERM) { // root of a user namespace is limited to net.core.rmem_max
		err = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return err
	}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index})
}

// Close ends the capture. Further calls do nothing.
func (s *Socket) Close() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}

// Next returns the next captured frame; ok is false if no frame is available. In that case it also checks for lost
// frames and returns ENOBUFS if there were any. The capture continues after that error.
func (s *Socket) Next() (frame Frame, ok bool, err error) {
	n, from, err := s.receive()
	if errors.Is(err, unix.EAGAIN) {
		return Frame{}, false, s.complete()
	}
	if err != nil {
		return Frame{}, false, fmt.Errorf("capture: %w", err)
	}
	link, isLink := from.(*unix.SockaddrLinklayer)
	if n < VnetHeaderLen {
		return Frame{}, false, fmt.Errorf("capture: %d bytes: %w", n, unix.EBADMSG)
	}
	return Frame{s.frame[VnetHeaderLen:n], isLink && link.Pkttype == unix.PACKET_OUTGOING, Unfinished(s.frame)}, true, nil
}

// receive reads a frame. Before Linux 6.2 the kernel cannot describe a train in an Unfinished: it drops the
// train, and the call fails with EINVAL.
func (s *Socket) receive() (n int, from unix.Sockaddr, err error) {
	for {
		n, from, err = unix.Recvfrom(s.fd, s.frame, 0)
		if !errors.Is(err, unix.EINVAL) {
			return n, from, err
		}
		s.trains++
	}
}

// Frames iterates over the frames captured so far, as Next returns them. It ends after an error.
func (s *Socket) Frames() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for {
			frame, ok, err := s.Next()
			if !ok && err == nil || !yield(frame, err) || err != nil {
				return
			}
		}
	}
}

// wait returns when there may be a frame, or after 10 ms.
func (s *Socket) wait() error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, 10)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

func (s *Socket) complete() error {
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && stats.Drops > 0 {
		err = fmt.Errorf("%d frames were lost: %w", stats.Drops, unix.ENOBUFS)
	}
	if err == nil && s.trains > 0 {
		err = fmt.Errorf("%d packet trains were lost: packet sockets can read them since Linux 6.2; make the sender segment them (Namespace.CutTrains): %w", s.trains, unix.ENOBUFS)
	}
	s.trains = 0
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
