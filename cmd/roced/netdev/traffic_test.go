// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/hca"
)

var check = errtest.Check

// in opens something in a host's namespace.
func in[T any](t testing.TB, ns *lab.Namespace, open func() (T, error)) (opened T) {
	t.Helper()
	check(t, hca.RunIn(ns.Path(), func() (err error) {
		opened, err = open()
		return err
	}))
	return opened
}

// echo is an ICMP echo request, of either version. The kernel computes the checksum of ICMPv6.
func echo(kind byte, sequence uint16, payload []byte) []byte {
	p := append([]byte{kind, 0, 0, 0, 0x70, 0x6e}, byte(sequence>>8), byte(sequence))
	p = append(p, payload...)
	sum := uint32(0)
	for i := 0; i+1 < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(p[2:], ^uint16(sum))
	return p
}

// ping sends echo requests until a reply arrives, as ping(8) does, and returns their number.
func ping(t testing.TB, ns *lab.Namespace, to string, size int) (answers int) {
	t.Helper()
	ip := netip.MustParseAddr(to)
	network, request, reply := "ip4:icmp", byte(8), byte(0)
	if ip.Is6() {
		network, request, reply = "ip6:ipv6-icmp", 128, 129
	}
	conn := in(t, ns, func() (net.PacketConn, error) { return net.ListenPacket(network, "") })
	defer conn.Close()
	payload, buffer := bytes.Repeat([]byte{0x5a}, size), make([]byte, 65536)
	for sequence := range uint16(600) {
		_, err := conn.WriteTo(echo(request, sequence, payload), &net.IPAddr{IP: ip.AsSlice(), Zone: ip.Zone()})
		if err != nil {
			t.Logf("ping %s: %v", to, err)
		}
		check(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				break
			}
			if n == 8+size && buffer[0] == reply && bytes.Equal(buffer[8:n], payload) {
				return int(sequence) + 1
			}
		}
	}
	t.Fatalf("%s does not answer %d bytes", to, size)
	return 0
}

// bulk copies bytes over TCP from one host to another and checks them. It returns the bytes per
// second.
func bulk(t testing.TB, a, b *lab.Namespace, to string, size int64) float64 {
	t.Helper()
	listener := in(t, b, func() (net.Listener, error) { return net.Listen("tcp", net.JoinHostPort(to, "0")) })
	defer listener.Close()
	seed := rand.Uint64()
	t.Log("seed", seed)
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(h, conn)
			conn.Close()
		}
		sum <- h.Sum(nil)
	}()
	conn := in(t, a, func() (net.Conn, error) {
		return net.DialTimeout("tcp", listener.Addr().String(), waittest.Limit)
	})
	check(t, conn.SetDeadline(time.Now().Add(waittest.Limit)))
	h, source := sha256.New(), rand.New(rand.NewPCG(seed, 0))
	block := make([]byte, 1<<16)
	begin := time.Now()
	for left := size; left > 0; left -= int64(len(block)) {
		binary.BigEndian.PutUint64(block[source.IntN(len(block)-8):], source.Uint64())
		h.Write(block)
		if _, err := conn.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	check(t, conn.Close())
	if got := <-sum; !bytes.Equal(got, h.Sum(nil)) {
		t.Fatal("the received bytes differ from the sent ones")
	}
	return float64(size) / time.Since(begin).Seconds()
}

// multicast sends to an IP group until a member on the other host receives it.
func multicast(t testing.TB, a, b *lab.Namespace, device, group string) {
	t.Helper()
	at := &net.UDPAddr{IP: net.ParseIP(group), Port: 7777, Zone: device}
	network := "udp6"
	if at.IP.To4() != nil {
		network, at.Zone = "udp4", ""
	}
	member := in(t, b, func() (*net.UDPConn, error) {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return nil, err
		}
		return net.ListenMulticastUDP(network, link, at)
	})
	defer member.Close()
	sender := in(t, a, func() (*net.UDPConn, error) { return net.DialUDP(network, nil, at) })
	defer sender.Close()
	waittest.Eventually(t, "a datagram to "+group, func() bool {
		_, err := sender.Write([]byte("to all"))
		check(t, err)
		check(t, member.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		p := make([]byte, 100)
		n, _, err := member.ReadFromUDP(p)
		return err == nil && string(p[:n]) == "to all"
	})
}
