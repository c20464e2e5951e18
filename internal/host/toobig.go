// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// TooBig is a router's report that a packet was too big to forward: "fragmentation needed" (RFC
// 1191) or "packet too big" (RFC 4443, 3.2).
type TooBig struct {
	Source, Dest netip.Addr // of the packet
	MTU          int        // of the link that is too small, in bytes; 0 from old routers
}

// Routers receives routers' reports about UDP packets to one port. The kernel does not use these reports,
// because no UDP socket sent the packets.
type Routers struct{ v4, v6 *os.File }

// ListenToRouters opens raw sockets for ICMP in the calling thread's network namespace. It needs
// CAP_NET_RAW.
func ListenToRouters(port uint16) (*Routers, error) {
	v4, err := listenICMP(unix.AF_INET, unix.IPPROTO_ICMP, tooBigV4(port))
	if err != nil {
		return nil, err
	}
	v6, err := listenICMP(unix.AF_INET6, unix.IPPROTO_ICMPV6, tooBigV6(port))
	if errors.Is(err, unix.EAFNOSUPPORT) {
		v6, err = nil, nil // the kernel has no IPv6
	}
	if err != nil {
		return nil, errors.Join(err, v4.Close())
	}
	return &Routers{v4, v6}, nil
}

func listenICMP(family, protocol int, filter []unix.SockFilter) (*os.File, error) {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, fmt.Errorf("socket for ICMP: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return nil, errors.Join(fmt.Errorf("filter for ICMP: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "icmp"), nil
}

// Listen calls notify for each report, until Close.
func (r *Routers) Listen(notify func(TooBig)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(r.v6, parseTooBigV6, notify)
	}()
	read(r.v4, parseTooBigV4, notify)
	<-done
}

// errorPause limits the processor time spent on repeated errors.
const errorPause = 10 * time.Millisecond

func read(from *os.File, parse func([]byte) (TooBig, bool), notify func(TooBig)) {
	var message [256]byte
	for from != nil {
		n, err := from.Read(message[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(errorPause) // a network error that the kernel reports on the socket
			continue
		}
		if report, ok := parse(message[:n]); ok {
			notify(report)
		}
	}
}

// Close ends Listen.
func (r *Routers) Close() error {
	err := r.v4.Close()
	if r.v6 != nil {
		err = errors.Join(err, r.v6.Close())
	}
	return err
}

// Offsets in an ICMP message, after the IPv4 header, whose length is in its first byte. The message consists
// of an ICMP header, the IPv4 header of the packet that was too big, without options, and the next eight
// bytes of that packet.
const (
	icmpMTU     = 6
	icmpInner   = 8
	ipv4Proto   = icmpInner + 9
	ipv4Source  = icmpInner + 12
	ipv4Dest    = icmpInner + 16
	ipv4UDPDest = icmpInner + 20 + 2
)

func tooBigV4(port uint16) []unix.SockFilter {
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_IND, K: at}
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}, // the length of the IPv4 header
		load(unix.BPF_H, 0), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 3<<8 | 4}, // unreachable, fragmentation needed
		load(unix.BPF_B, ipv4Proto), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP},
		load(unix.BPF_H, ipv4UDPDest), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port)},
	}
	return accept(program)
}

func parseTooBigV4(message []byte) (report TooBig, ok bool) {
	if len(message) < 1 || len(message) < int(message[0]&0xF)*4+ipv4UDPDest+2 {
		return report, false
	}
	icmp := message[int(message[0]&0xF)*4:]
	report.MTU = int(binary.BigEndian.Uint16(icmp[icmpMTU:]))
	report.Source = netip.AddrFrom4([4]byte(icmp[ipv4Source:]))
	report.Dest = netip.AddrFrom4([4]byte(icmp[ipv4Dest:]))
	return report, true
}

// Offsets in an ICMPv6 message: its header, the IPv6 header of the packet that was too big, and the
// start of the rest of that packet. Raw IPv6 sockets deliver no IPv6 header before it.
const (
	icmp6TooBig = 2
	icmp6MTU    = 4
	icmp6Inner  = 8
	ipv6Next    = icmp6Inner + 6
	ipv6Source  = icmp6Inner + 8
	ipv6Dest    = icmp6Inner + 24
	ipv6UDPDest = icmp6Inner + 40 + 2
)

func tooBigV6(port uint16) []unix.SockFilter {
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
	}
	return accept([]unix.SockFilter{
		load(unix.BPF_B, 0), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: icmp6TooBig},
		load(unix.BPF_B, ipv6Next), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP},
		load(unix.BPF_H, ipv6UDPDest), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port)},
	})
}

func parseTooBigV6(message []byte) (report TooBig, ok bool) {
	if len(message) < ipv6UDPDest+2 {
		return report, false
	}
	report.MTU = int(min(binary.BigEndian.Uint32(message[icmp6MTU:]), 1<<16))
	report.Source = netip.AddrFrom16([16]byte(message[ipv6Source:]))
	report.Dest = netip.AddrFrom16([16]byte(message[ipv6Dest:]))
	return report, true
}

// accept completes a filter: it drops a message if any comparison fails, and accepts it otherwise.
func accept(program []unix.SockFilter) []unix.SockFilter {
	drop := len(program) + 1
	for i := range program {
		if program[i].Code&0x7 == unix.BPF_JMP {
			program[i].Jf = uint8(drop - i - 1)
		}
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFF}, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K})
}
