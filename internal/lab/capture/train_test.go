// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// The train of a test: packets with payloads of 100 zero bytes. One packet with a payload of 1 follows it.
const (
	trainPackets = 10
	trainSegment = 100
)

// sendTrain sends the train and the packet from a host to the all-nodes group, which needs no neighbour entry.
func sendTrain(t *testing.T, ns *lab.Namespace) {
	t.Helper()
	err := ns.Do(func() error {
		conn, err := net.Dial("udp", "[ff02::1%eth0]:4791")
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.(*net.UDPConn).SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, trainSegment)
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if _, err = conn.Write(make([]byte, trainPackets*trainSegment)); err == nil {
			_, err = conn.Write([]byte{1})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// payload returns the payload of a packet of sendTrain, or nil for another frame.
func payload(frame []byte) []byte {
	const ip, udp, headers = 14, 14 + 40, 14 + 40 + 8
	if len(frame) <= headers || frame[ip+6] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(frame[udp+2:]) != 4791 {
		return nil
	}
	return frame[headers:]
}

// captured returns the numbers of frames and packets of sendTrain that a socket captures, up to the packet after the
// train.
func captured(t *testing.T, s *Socket) (frames, packets int, lost error) {
	t.Helper()
	last := false
	waittest.Eventually(t, "the packet after the train is captured", func() bool {
		for frame, err := range s.Frames() {
			if err != nil {
				lost = errors.Join(lost, err)
				continue
			}
			data := payload(frame.Data)
			if data == nil {
				continue
			}
			list, err := frame.Packets()
			if err != nil {
				t.Fatal(err)
			}
			frames, packets, last = frames+1, packets+len(list), last || data[0] == 1
		}
		return last
	})
	return frames, packets, lost
}

// TestTrains: a capture has the packets of a train, or reports a loss on a kernel that cannot deliver trains to it. On
// every kernel it has the packet after the train, and all packets of a train that the sender segments.
func TestTrains(t *testing.T) {
	hosts := labtest.Pair(t)
	s, err := Open(hosts.B, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	sendTrain(t, hosts.A)
	wantFrames, wantPackets := 2, trainPackets+1
	old := kernel.Before(kernel.Release(), 6, 2)
	if old {
		wantFrames, wantPackets = 1, 1
	}
	frames, packets, lost := captured(t, s)
	if frames != wantFrames || packets != wantPackets || errors.Is(lost, unix.ENOBUFS) != old {
		t.Errorf("%d frames of %d packets, %v; want %d of %d", frames, packets, lost, wantFrames, wantPackets)
	}
	if err := hosts.A.CutTrains("eth0"); err != nil {
		t.Fatal(err)
	}
	sendTrain(t, hosts.A)
	if frames, packets, lost := captured(t, s); frames != trainPackets+1 || packets != frames || lost != nil {
		t.Errorf("cut: %d frames of %d packets, %v", frames, packets, lost)
	}
}

// TestRecorderContinues: a recorder that has lost a frame records later frames, and reports the loss at its end.
func TestRecorderContinues(t *testing.T) {
	hosts := labtest.Pair(t)
	seen, err := Open(hosts.B, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	r, err := Record(hosts.B, "eth0") // the kernel delivers a frame to the newest socket first
	if err != nil {
		t.Fatal(err)
	}
	sendTrain(t, hosts.A)
	captured(t, seen) // so the recorder's socket has received them too
	frames, err := r.Stop()
	if old := kernel.Before(kernel.Release(), 6, 2); errors.Is(err, unix.ENOBUFS) != old || err != nil && !old {
		t.Errorf("recorder: %v", err)
	}
	if !slices.ContainsFunc(frames, func(r Recorded) bool { data := payload(r.Data); return data != nil && data[0] == 1 }) {
		t.Errorf("%d frames, without the packet after the train", len(frames))
	}
}
