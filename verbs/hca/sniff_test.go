package hca

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/netlab"
	"golang.org/x/sys/unix"
)

// sniffer sees what passes a link: all of it, unless that link is a device.
type sniffer struct {
	testing.TB
	fd int
}

func newSniffer(t testing.TB, host *netlab.Namespace) *sniffer {
	t.Helper()
	return newSnifferOn(t, host, "eth0")
}

func newSnifferOn(t testing.TB, host *netlab.Namespace, name string) *sniffer {
	t.Helper()
	index, err := host.Index(name)
	check(t, err)
	s := &sniffer{TB: t}
	all := uint16(unix.ETH_P_ALL)
	check(t, host.Do(func() (err error) {
		s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	t.Cleanup(func() { check(t, unix.Close(s.fd)) })
	network := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, all))
	check(t, unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: network, Ifindex: index}))
	patience := unix.NsecToTimeval(patience.Nanoseconds())
	check(t, unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	return s
}

// next is the next RoCEv2 packet.
func (s *sniffer) next() (frame []byte, p *wire.Packet) {
	s.Helper()
	frame = make([]byte, 9216)
	for {
		n, err := unix.Read(s.fd, frame)
		check(s, err)
		p = new(wire.Packet)
		if wire.Parse(frame[:n], p) == wire.FaultNone {
			return frame[:n], p
		}
	}
}

// destMAC is where the next RoCEv2 packet goes.
func (s *sniffer) destMAC() (mac wire.MAC) {
	s.Helper()
	frame, _ := s.next()
	copy(mac[:], frame)
	return mac
}

// read gives the frames that have come up to now.
func (s *sniffer) read() (frames [][]byte) {
	s.Helper()
	check(s, unix.SetNonblock(s.fd, true))
	frame := make([]byte, 9216)
	for {
		length, err := unix.Read(s.fd, frame)
		if err == unix.EAGAIN {
			return frames
		}
		check(s, err)
		if length >= 34 {
			frames = append(frames, bytes.Clone(frame[:length]))
		}
	}
}

// setNeighbourTimers makes a host's eth0 ask for neighbours more often than once a second.
func setNeighbourTimers(t testing.TB, host *netlab.Namespace) {
	t.Helper()
	check(t, host.Do(func() error {
		for _, knob := range []string{"retrans_time_ms", "interval_probe_time_ms"} {
			for _, family := range []string{"ipv4", "ipv6"} {
				path := filepath.Join("/proc/sys/net", family, "neigh/eth0", knob)
				if err := os.WriteFile(path, []byte("100"), 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// asleep waits until a device's worker sleeps, and checks that it sleeps on.
func asleep(t testing.TB, d *Device) {
	t.Helper()
	eventually(t, "sleep of the worker", func() bool {
		for range 50 {
			if !d.doorbell.Asleep() {
				return false
			}
			time.Sleep(time.Millisecond)
		}
		return true
	})
}
