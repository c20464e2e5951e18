// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Impairment impairs RoCEv2 packets with probabilities from 0 to 1. Other frames are forwarded unchanged.
type Impairment struct {
	Loss, Duplication, Corruption, Delay float64
	// DelayTime is the delay of a delayed packet; other packets overtake it.
	DelayTime time.Duration
}

// BadWire forwards frames between two links of a namespace in this process and impairs them. (netem would do
// the same, but few test machines have its module.)
type BadWire struct {
	halves [2]*os.File
	ends   sync.WaitGroup
	errs   [2]error
}

// NewBadWire joins two links until Close.
func NewBadWire(ns *Namespace, a, b string, seed uint64, i Impairment) (w *BadWire, err error) {
	w = &BadWire{}
	for n, link := range []string{a, b} {
		if w.halves[n], err = ns.openRaw(link); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	for n, from := range w.halves {
		d := direction{Impairment: i, r: rand.New(rand.NewPCG(seed, uint64(n))), to: w.halves[1-n]}
		w.ends.Go(func() { w.errs[n] = d.relay(from) })
	}
	return w, nil
}

// Close closes both directions and returns their errors.
func (w *BadWire) Close() error {
	for _, half := range w.halves {
		if half != nil {
			_ = half.Close()
		}
	}
	w.ends.Wait()
	return errors.Join(w.errs[:]...)
}

// openRaw opens a link for raw frames. They start with a virtio-net header, which preserves packet trains.
func (ns *Namespace) openRaw(link string) (*os.File, error) {
	index, err := ns.Index(link)
	if err != nil {
		return nil, err
	}
	fd := -1
	err = ns.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}),
		)
	})
	if fd < 0 {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), link) // for the runtime's poller, so that Close ends Read
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// direction is one direction of the wire.
type direction struct {
	Impairment
	r  *rand.Rand
	to *os.File
}

// relay forwards frames until a half is closed.
func (d *direction) relay(from *os.File) error {
	buffer := make([]byte, 1<<17)
	for {
		n, err := from.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case errors.Is(err, unix.ENETDOWN): // its namespace is being removed, or the link was set down
			continue
		case err != nil:
			return err
		}
		d.pass(buffer[:n])
	}
}

// pass impairs a frame and sends the result. A frame that the link does not accept is a loss.
func (d *direction) pass(frame []byte) {
	if !isRoCE(frame) {
		_, _ = d.to.Write(frame)
		return
	}
	chance := func(p float64) bool { return d.r.Float64() < p }
	if chance(d.Loss) {
		return
	}
	if chance(d.Corruption) { // after the headers that the kernel reads
		frame[len(frame)-1-d.r.IntN(16)] ^= 1 << d.r.IntN(8)
	}
	if chance(d.Duplication) {
		_, _ = d.to.Write(frame)
	}
	if chance(d.Delay) {
		late := slices.Clone(frame)
		time.AfterFunc(d.DelayTime, func() { _, _ = d.to.Write(late) })
		return
	}
	_, _ = d.to.Write(frame)
}

// isRoCE reports whether a frame with a virtio-net header is a RoCEv2 packet: UDP to port 4791.
func isRoCE(frame []byte) bool {
	const virtio, ethernet, port = 10, 14, 4791
	if len(frame) < virtio+ethernet+40+8 {
		return false
	}
	packet := frame[virtio+ethernet:]
	udp, protocol := packet[20:], packet[9]
	if packet[0]>>4 == 6 {
		udp, protocol = packet[40:], packet[6]
	}
	return protocol == unix.IPPROTO_UDP && binary.BigEndian.Uint16(udp[2:]) == port
}
