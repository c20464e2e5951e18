// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"errors"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Offloads that a program on a TAP can support (linux/if_tun.h). The last two are from Linux 6.2, like trains.
const (
	tunChecksums = 0x01        // TUN_F_CSUM
	tunSegments  = 0x20 | 0x40 // TUN_F_USO4, TUN_F_USO6
)

// tapReader is a program on a TAP, like an emulator of a virtual machine.
type tapReader struct {
	testing.TB
	fd     int
	header bool // each frame follows a struct virtio_net_hdr
	buffer [1 << 16]byte
}

// openTap attaches to a TAP; offload has the supported offloads.
func openTap(t *testing.T, host *lab.Namespace, name string, header bool, offload int) *tapReader {
	t.Helper()
	r := &tapReader{TB: t, fd: -1, header: header}
	flags := uint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if header {
		flags |= unix.IFF_VNET_HDR
	}
	request, err := unix.NewIfreq(name)
	check(t, err)
	request.SetUint16(flags)
	check(t, host.Do(func() (err error) {
		if r.fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		t.Cleanup(func() { check(t, unix.Close(r.fd)) })
		return unix.IoctlIfreq(r.fd, unix.TUNSETIFF, request)
	}))
	err = unix.IoctlSetInt(r.fd, unix.TUNSETOFFLOAD, offload)
	if offload&tunSegments != 0 && !link.KernelCutsTrains() {
		refused(t, err, unix.EINVAL)
	} else {
		check(t, err)
	}
	return r
}

// read returns the next frame, segmented if it is a train, and whether it was one; nil if no frame is queued.
func (r *tapReader) read() (packets [][]byte, train bool) {
	r.Helper()
	n, err := unix.Read(r.fd, r.buffer[:])
	if errors.Is(err, unix.EAGAIN) {
		return nil, false
	}
	check(r, err)
	if !r.header {
		return [][]byte{bytes.Clone(r.buffer[:n])}, false
	}
	about := capture.Unfinished(r.buffer[:])
	packets, err = about.Packets(r.buffer[capture.VnetHeaderLen:n])
	check(r, err)
	return packets, about.Train()
}

// next waits for the next RoCEv2 packets, and returns whether they arrived as one train.
func (r *tapReader) next(what string) (packets [][]byte, train bool) {
	r.Helper()
	eventually(r, what, func() bool {
		var p wire.Packet
		packets, train = r.read()
		return len(packets) > 0 && wire.Parse(packets[0], &p) != wire.FaultNotRoCE
	})
	return packets, train
}

// expectWindow reads a window of messages, complete and in order, and returns the number of their trains.
func (r *tapReader) expectWindow(first, length int, checksums bool) (trains int) {
	r.Helper()
	for number := first; number < first+window; {
		packets, train := r.next("a message")
		if train {
			trains++
		}
		for _, packet := range packets {
			has := r.expectPacket(packet, number, length)
			if last := number == first+window-1; has != checksums && !(checksums && last) { // the last may leave separately
				r.Fatalf("message %d: UDP checksum present: %t", number, has)
			}
			number++
		}
	}
	return trains
}

// expectPacket checks a packet, and returns whether it has a UDP checksum.
func (r *tapReader) expectPacket(packet []byte, number, length int) (checksum bool) {
	r.Helper()
	var p wire.Packet
	if fault := wire.Parse(packet, &p); fault != wire.FaultNone || !p.CheckICRC() {
		r.Fatalf("message %d: %v, or wrong ICRC", number, fault)
	}
	checksum, right := capture.ChecksumRight(packet)
	if !right {
		r.Fatalf("message %d: wrong UDP checksum", number)
	}
	if int(p.Imm()) != number || !bytes.Equal(p.Payload(), pattern(length, number)) {
		r.Fatalf("message %d: got number %d with %d bytes", number, p.Imm(), len(p.Payload()))
	}
	return checksum
}

// tapAddresses are the reader's addresses, and tapMAC its MAC.
var (
	tapAddresses = []string{"10.77.0.3", "fd77::3"}
	tapMAC       = wire.MAC{2, 0, 0, 0, 0, 3}
)

// newTapLab returns a station on a bridge, in a send mode, and the name of a TAP on that bridge.
func newTapLab(t *testing.T, mode SendMode) (a *station, bridge *lab.Bridge, port string) {
	t.Helper()
	hosts := labtest.Switched(t)
	for _, address := range tapAddresses {
		setEntry(t, hosts.A, address, tapMAC[:], netlink.NUD_PERMANENT)
	}
	port, err := hosts.Bridge.Tap(1500)
	check(t, err)
	return deepen(newStation(t, open(t, hosts.A, WithSendMode(mode)))), hosts.Bridge, port
}

// meet sends messages until one arrives: a TAP needs a moment to get a carrier. Then it reads up to a message of
// another length, so that none of them is left.
func (r *tapReader) meet(a *station, to string) {
	r.Helper()
	ah := a.ah(to)
	comes := func(length int) bool {
		packets, _ := r.read()
		var p wire.Packet
		return len(packets) > 0 && wire.Parse(packets[0], &p) == wire.FaultNone && p.Destination() == gid(to) && len(p.Payload()) == length
	}
	send := func(length int) {
		a.post(messageWR(a, a, ah, pattern(length, 0)))
		check(r, a.wait(1)[0].Err())
	}
	eventually(r, "a first message", func() bool {
		send(8)
		return comes(8)
	})
	send(12)
	eventually(r, "the last of these messages", func() bool { return comes(12) })
	check(r, ah.Close())
}

// Programs on a TAP read packets, unless they support segmentation offloads: then they read one long frame, with the
// data to make the same packets of it.
func TestSendIntoATAP(t *testing.T) {
	t.Parallel()
	needs.TUN(t)
	for _, row := range []struct {
		name    string
		mode    SendMode
		header  bool
		offload int
		trains  bool
	}{
		{"plain", SendTrains, false, 0, false},
		{"with headers", SendTrains, true, 0, false},
		{"with checksums to do", SendTrains, true, tunChecksums, false},
		{"with segments to cut", SendTrains, true, tunChecksums | tunSegments, true},
		{"with segments to cut, automatic", SendAuto, true, tunChecksums | tunSegments, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, bridge, port := newTapLab(t, row.mode)
			r := openTap(t, bridge.Namespace, port, row.header, row.offload)
			for _, to := range tapAddresses {
				r.meet(a, to)
				r.expectBursts(a, to, row.mode == SendTrains && link.KernelCutsTrains(), row.trains && link.KernelCutsTrains())
			}
		})
	}
}

// expectBursts sends bursts to the reader and reads them. Packets that left in trains have UDP checksums.
func (r *tapReader) expectBursts(a *station, to string, leave, arrive bool) {
	r.Helper()
	ah, first := a.ah(to), 0
	for _, length := range []int{4, 64, 1001, 1024} {
		for range 4 {
			a.postWindow(ah, a, first, length)
			for _, wc := range a.wait(window) {
				check(r, wc.Err())
			}
			if trains := r.expectWindow(first, length, leave); (trains > 0) != arrive {
				r.Errorf("%d bytes to %s: got %d trains", length, to, trains)
			}
			first += window
		}
	}
	check(r, ah.Close())
}
