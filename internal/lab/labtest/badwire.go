package labtest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

// Impairment is what a bad wire does to RoCEv2 packets: probabilities from 0 to 1. Other frames pass as they are.
type Impairment struct {
	Loss, Duplication, Corruption, Delay float64
	// DelayTime is how long a packet that is delayed waits; others pass it meanwhile.
	DelayTime time.Duration
}

// BadPair is Pair with a bad wire, which this process is: it takes frames from one half of it and sends them on the
// other. (netem would do the same, but few test machines have its module.)
func BadPair(t testing.TB, seed uint64, i Impairment) *PairLab {
	t.Helper()
	pair, middle := &PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}, New(t, "labtest-w")
	for _, err := range []error{lab.Veth(pair.A, middle, "eth0", "a"), lab.Veth(pair.B, middle, "eth0", "b")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	halves := [2]*os.File{openHalf(t, middle, "a"), openHalf(t, middle, "b")}
	var ends sync.WaitGroup
	for n, from := range halves {
		w := badWire{Impairment: i, r: rand.New(rand.NewPCG(seed, uint64(n))), to: halves[1-n]}
		ends.Go(func() {
			if err := w.relay(from); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		if err := errors.Join(halves[0].Close(), halves[1].Close()); err != nil {
			t.Error(err)
		}
		ends.Wait()
	})
	addAddresses(t, pair.A, "10.77.0.1/24", "fd77::1/64")
	addAddresses(t, pair.B, "10.77.0.2/24", "fd77::2/64")
	return pair
}

// openHalf opens a link for raw frames. They have the header of virtio-net in front, by which a train stays one.
func openHalf(t testing.TB, ns *lab.Namespace, link string) *os.File {
	t.Helper()
	index, err := ns.Index(link)
	if err != nil {
		t.Fatal(err)
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
	file := os.NewFile(uintptr(fd), link) // for the runtime's poller: Close ends a Read
	if err != nil {
		t.Fatal(errors.Join(err, file.Close()))
	}
	return file
}

// badWire is one direction.
type badWire struct {
	Impairment
	r  *rand.Rand
	to *os.File
}

// relay runs until a half is closed.
func (w *badWire) relay(from *os.File) error {
	buffer := make([]byte, 1<<17)
	for {
		n, err := from.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil
		case errors.Is(err, unix.ENETDOWN): // a namespace is being removed, or a test sets the link down
			continue
		case err != nil:
			return err
		}
		w.pass(buffer[:n])
	}
}

// pass does to a frame what the wire does, and sends what is left of it. That a link does not take it is one more
// loss.
func (w *badWire) pass(frame []byte) {
	if !isRoCE(frame) {
		_, _ = w.to.Write(frame)
		return
	}
	chance := func(p float64) bool { return w.r.Float64() < p }
	if chance(w.Loss) {
		return
	}
	if chance(w.Corruption) { // behind the headers that the kernel reads
		frame[len(frame)-1-w.r.IntN(16)] ^= 1 << w.r.IntN(8)
	}
	if chance(w.Duplication) {
		_, _ = w.to.Write(frame)
	}
	if chance(w.Delay) {
		late := slices.Clone(frame)
		time.AfterFunc(w.DelayTime, func() { _, _ = w.to.Write(late) })
		return
	}
	_, _ = w.to.Write(frame)
}

// isRoCE reports whether a frame, with the header of virtio-net, is a RoCEv2 packet: UDP to port 4791.
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
