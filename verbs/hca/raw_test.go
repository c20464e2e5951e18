package hca

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/netlab"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// rawSender puts frames on the wire as they are, from a host to a station on another.
type rawSender struct {
	testing.TB
	fd       int
	from, to wire.MAC
	dest     verbs.QPN
}

func newRawSender(t testing.TB, from, to *netlab.Namespace, dest verbs.QPN) *rawSender {
	t.Helper()
	r := &rawSender{TB: t, dest: dest}
	copy(r.from[:], eth0(t, from).Attrs().HardwareAddr)
	copy(r.to[:], eth0(t, to).Attrs().HardwareAddr)
	check(t, from.Do(func() (err error) {
		r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	t.Cleanup(func() { check(t, unix.Close(r.fd)) })
	check(t, unix.Bind(r.fd, &unix.SockaddrLinklayer{Ifindex: eth0(t, from).Attrs().Index}))
	return r
}

// send puts a frame on the link. A link that drops it at once counts that; older kernels
// also say so.
func (r *rawSender) send(frame []byte) {
	r.Helper()
	if _, err := unix.Write(r.fd, frame); err != nil && !errors.Is(err, unix.ENOBUFS) {
		r.Fatal(err)
	}
}

// path is the way from the host's addresses in labtest's picture.
func (r *rawSender) path(source, dest string) wire.Path {
	return wire.Path{SourceMAC: r.from, DestMAC: r.to, Source: gid(source), Dest: gid(dest)}
}

func (r *rawSender) datagram() wire.Datagram {
	return wire.Datagram{DestQP: r.dest, SourceQP: 0x456, QKey: testQKey, PKey: wire.PKeyDefault}
}

// frame is a packet as a peer would send it.
func frame(path wire.Path, d wire.Datagram, payload []byte) []byte {
	template := wire.NewTemplate(path)
	f := make([]byte, wire.MaxHeaders+len(payload)+wire.MaxTrailer)
	copy(f[template.PayloadOffset(d.HasImm):], payload)
	return f[:template.Seal(f, &d, len(payload))]
}

func (r *rawSender) good(payload []byte) []byte {
	return frame(r.path("10.77.0.1", "10.77.0.2"), r.datagram(), payload)
}

// Offsets in an untagged IPv4 frame.
const (
	atIP      = 14
	atUDP     = atIP + 20
	atBTH     = atUDP + 8
	atDETH    = atBTH + 12
	atPayload = atDETH + 8
)

// resealed puts a right IPv4 checksum and a right ICRC on a frame that was changed,
// so that the change alone is what is wrong with it.
func resealed(f []byte) []byte {
	ip := f[atIP:atUDP]
	ip[10], ip[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	masked := append(bytes.Repeat([]byte{0xFF}, 8), f[atIP:len(f)-4]...)
	for _, at := range []int{1, 8, 10, 11, 26, 27, 32} { // TOS, TTL, checksums, FECN
		masked[8+at] = 0xFF
	}
	binary.LittleEndian.PutUint32(f[len(f)-4:], crc32.ChecksumIEEE(masked))
	return f
}

// changed is a good frame with one thing wrong.
func (r *rawSender) changed(do func(f []byte)) []byte {
	f := r.good([]byte("what a peer would send"))
	do(f)
	return resealed(f)
}

// shortened is a good frame of a given length whose IP and UDP lengths say so.
func (r *rawSender) shortened(length int) []byte {
	f := r.good(make([]byte, 64))[:length]
	binary.BigEndian.PutUint16(f[atIP+2:], uint16(length-atIP))
	binary.BigEndian.PutUint16(f[atUDP+4:], uint16(length-atUDP))
	return resealed(f)
}

// optioned is a good frame whose IPv4 header has four bytes of options (no-operation).
func (r *rawSender) optioned() []byte {
	f := r.good([]byte("what a peer would send"))
	f = append(f[:atUDP:atUDP], append([]byte{1, 1, 1, 1}, f[atUDP:]...)...)
	f[atIP] = 0x46
	binary.BigEndian.PutUint16(f[atIP+2:], uint16(len(f)-atIP))
	return f
}

// fragmentedIPv6 is an IPv6 packet with a fragment header.
func (r *rawSender) fragmentedIPv6() []byte {
	f := frame(r.path("fd77::1", "fd77::2"), r.datagram(), make([]byte, 16))
	f[atIP+6] = 44
	return f
}
