// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// A receiving socket does not report the IPv4 identification of packets, but a socket filter can read their IP headers.
// The probe therefore sends itself a single packet and a train whose payloads contain the expected identifications, and
// a filter truncates packets whose identification differs.

// ErrNumbering reports that the kernel assigns identifications other than 0 to single packets, so that their ICRCs
// would be wrong.
var ErrNumbering = errno.New("this kernel sets an unexpected IPv4 identification in UDP packets (not 0), so their ICRC cannot be computed", unix.EOPNOTSUPP)

// Probe checks the IPv4 identifications that the kernel assigns. err is ErrNumbering if those of single packets are
// unexpected. trains is nil if trains can be used, and otherwise the reason why they cannot. Probe sends five packets
// on the loopback interface of the calling thread's network namespace.
func Probe() (trains, err error) {
	p, err := newProbe()
	if err != nil {
		return untried(err), nil
	}
	defer unix.Close(p.fd)
	if err := p.try(0); err != nil {
		return untried(err), nil
	}
	if err := filter(p.fd, numberFilter); err != nil {
		return fmt.Errorf("cannot observe the IPv4 identifications of this kernel: %w", err), nil
	}
	switch err := p.try(0); {
	case errors.Is(err, ErrNumbering):
		return nil, err
	case err != nil:
		return untried(err), nil
	}
	return p.tryTrain(), nil
}

func untried(err error) error {
	return fmt.Errorf("cannot test the IPv4 identifications of this kernel: %w; check that the interface lo is up (ip link set lo up)", err)
}

// probe is a socket that sends to itself.
type probe struct {
	fd   int
	self *unix.SockaddrInet4
}

func newProbe() (p probe, err error) {
	if p.fd, err = newUDP(unix.AF_INET, sendOptions[unix.AF_INET]); err != nil {
		return p, err
	}
	if err = unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		var self unix.Sockaddr
		if self, err = unix.Getsockname(p.fd); err == nil {
			p.self = self.(*unix.SockaddrInet4)
		}
	}
	if err != nil {
		return p, errors.Join(fmt.Errorf("UDP socket on the loopback interface: %w", err), unix.Close(p.fd))
	}
	return p, nil
}

// tryTrain returns the reason why trains cannot be used; nil if they can.
func (p *probe) tryTrain() error {
	var train []byte
	for i := range byte(3) {
		train = append(train, probeOf(i)...)
	}
	err := unix.SetsockoptInt(p.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, len(train)/3)
	if err == nil {
		err = p.send(train)
	}
	if err != nil {
		return fmt.Errorf("this kernel does not segment trains: %w", err)
	}
	for i := range byte(3) {
		if err := p.arrives(i); err != nil {
			return fmt.Errorf("this kernel does not set the IPv4 identifications 0, 1, 2 in the packets of a train: packet %d: %w", i, err)
		}
	}
	return nil
}

// try sends a packet, and waits for it.
func (p *probe) try(id byte) error {
	if err := p.send(probeOf(id)); err != nil {
		return err
	}
	return p.arrives(id)
}

func (p *probe) isSelf(from unix.Sockaddr) bool {
	a, ok := from.(*unix.SockaddrInet4)
	return ok && a.Addr == p.self.Addr && a.Port == p.self.Port
}

func (p *probe) send(b []byte) error { return unix.Sendto(p.fd, b, unix.MSG_DONTWAIT, p.self) }

func probeOf(id byte) []byte { return []byte{0, id, 'r', 'o', 'c', 'e', 'd', 0} }

// netHeader is the offset of the network header in a filter (SKF_NET_OFF in linux/filter.h).
const netHeader = 0xFFF00000

// numberFilter truncates datagrams whose identification differs from the first two bytes of the payload, or that may be
// fragmented, to one byte. Its offsets begin at the UDP header.
var numberFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 8},
	{Code: unix.BPF_MISC | unix.BPF_TAX},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: netHeader + 4},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_X, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: netHeader + 6},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x4000, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFF},
	{Code: unix.BPF_RET | unix.BPF_K, K: 8 + 1},
}

// probeTime is the timeout for a packet, which is far longer than it takes on the loopback interface.
const probeTime = 100 * time.Millisecond

// arrives waits for a packet. It returns ErrNumbering if the identification differs, and ETIMEDOUT if the packet does
// not arrive.
func (p *probe) arrives(id byte) error {
	var got [16]byte
	for end := time.Now().Add(probeTime); time.Now().Before(end); {
		n, from, err := unix.Recvfrom(p.fd, got[:], unix.MSG_DONTWAIT)
		switch {
		case err != nil:
			wait := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
			_, _ = unix.Poll(wait, int(time.Until(end).Milliseconds())+1)
		case !p.isSelf(from): // sent by another program
		case n == len(probeOf(id)) && got[1] == id:
			return nil
		default:
			return ErrNumbering
		}
	}
	return unix.ETIMEDOUT
}
