// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// rawSender puts frames on the wire unchanged, from a host to a station on another.
type rawSender struct {
	testing.TB
	fd       int
	from, to wire.MAC
	dest     verbs.QPN
}

func newRawSender(t testing.TB, from, to *lab.Namespace, dest verbs.QPN) *rawSender {
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

// send puts a frame on the link. A link that drops it immediately counts that; older kernels also return an error.
func (r *rawSender) send(frame []byte) {
	r.Helper()
	if _, err := unix.Write(r.fd, frame); err != nil && !errors.Is(err, unix.ENOBUFS) {
		r.Fatal(err)
	}
}

// path returns the path from the host's addresses in labtest's picture.
func (r *rawSender) path(source, dest string) wire.Path {
	return wire.Path{SourceMAC: r.from, DestMAC: r.to, Source: gid(source), Dest: gid(dest)}
}

func (r *rawSender) datagram() wire.Datagram {
	return wire.Datagram{DestQP: r.dest, SourceQP: 0x456, QKey: testQKey, PKey: wire.PKeyDefault}
}

// frame returns a packet as a peer would send it.
func frame(path wire.Path, d wire.Datagram, payload []byte) []byte {
	template := wire.NewTemplate(path)
	f := make([]byte, wire.MaxHeaders+len(payload)+wire.MaxTrailer)
	copy(f[template.PayloadOffset(d.HasImm):], payload)
	return f[:template.Seal(f, &d, len(payload))]
}

func (r *rawSender) good(payload []byte) []byte {
	return frame(r.path("10.77.0.1", "10.77.0.2"), r.datagram(), payload)
}

// changed returns a good frame with one modification.
func (r *rawSender) changed(do func(f []byte)) []byte {
	f := r.good([]byte("some payload of a peer"))
	do(f)
	return wiretest.Reseal(f)
}

// shortened returns a good frame of a given length.
func (r *rawSender) shortened(length int) []byte {
	return wiretest.Shorten(r.good(make([]byte, 64)), length)
}

// optioned returns a good frame whose IPv4 header has four bytes of options (no-operation).
func (r *rawSender) optioned() []byte {
	f := r.good([]byte("some payload of a peer"))
	f = append(f[:wiretest.UDP:wiretest.UDP], append([]byte{1, 1, 1, 1}, f[wiretest.UDP:]...)...)
	f[wiretest.IP] = 0x46
	binary.BigEndian.PutUint16(f[wiretest.IP+2:], uint16(len(f)-wiretest.IP))
	return f
}

// fragmentedIPv6 returns an IPv6 packet with a fragment header.
func (r *rawSender) fragmentedIPv6() []byte {
	f := frame(r.path("fd77::1", "fd77::2"), r.datagram(), make([]byte, 16))
	f[wiretest.IP+6] = 44
	return f
}
