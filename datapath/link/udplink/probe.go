package udplink

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// How the kernel numbers packets is not to be seen by a socket that receives them. But a socket filter sees their IP
// headers. So the card sends itself a single packet and a train, whose payloads say which identification each is to
// have, and a filter lets through those that have it.

// ErrNumbering says that the kernel gives single packets another identification than 0. Their ICRCs would be wrong.
var ErrNumbering = errno.New("this kernel numbers IPv4 packets of UDP sockets otherwise than Linux does, so their ICRC cannot be known", unix.EOPNOTSUPP)

// Probe says whether the kernel numbers packets as they must be: ErrNumbering if not. Trains are nil if the packets
// of a train can be known too, otherwise why not. It sends five packets on the loopback interface of the calling thread's
// namespace.
func Probe() (trains, err error) {
	p, err := newProbe()
	if err != nil {
		return untried(err), nil
	}
	defer unix.Close(p.fd)
	if err := p.send(probeOf(0)); err != nil || !p.arrives(0) {
		return untried(cmp.Or(err, error(unix.ETIMEDOUT))), nil
	}
	if err := filter(p.fd, numberFilter); err != nil {
		return fmt.Errorf("how this kernel numbers packets cannot be seen: %w", err), nil
	}
	if err := p.send(probeOf(0)); err != nil || !p.arrives(0) {
		return nil, errors.Join(ErrNumbering, err)
	}
	return p.tryTrain(), nil
}

func untried(err error) error {
	return fmt.Errorf("how this kernel numbers packets cannot be tried: %w; is the interface lo up? (ip link set lo up)", err)
}

// probe is a socket that sends to itself.
type probe struct {
	fd   int
	self unix.Sockaddr
}

func newProbe() (p probe, err error) {
	if p.fd, err = newUDP(unix.AF_INET, sendOptions[unix.AF_INET]); err != nil {
		return p, err
	}
	if err = unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		p.self, err = unix.Getsockname(p.fd)
	}
	if err != nil {
		return p, errors.Join(fmt.Errorf("UDP socket of the loopback interface: %w", err), unix.Close(p.fd))
	}
	return p, nil
}

// tryTrain says why the packets of a train cannot be known; nil if they can.
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
		return fmt.Errorf("this kernel does not make packets of trains: %w", err)
	}
	for i := range byte(3) {
		if !p.arrives(i) {
			return fmt.Errorf("this kernel does not number the packets of a train 0, 1, 2: packet %d has not come", i)
		}
	}
	return nil
}

func (p *probe) send(b []byte) error { return unix.Sendto(p.fd, b, unix.MSG_DONTWAIT, p.self) }

func probeOf(id byte) []byte { return []byte{0, id, 'r', 'o', 'c', 'e', 'd', 0} }

// numberFilter lets through datagrams whose identification is in the first two bytes of the payload, and that may not be
// fragmented. Its offsets begin at the UDP header.
var numberFilter = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 8},
	{Code: unix.BPF_MISC | unix.BPF_TAX},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: netHeader + 4},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_X, Jf: 3},
	{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: netHeader + 6},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x4000, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFF},
	{Code: unix.BPF_RET | unix.BPF_K},
}

// probeTime is far longer than a packet takes on the loopback interface.
const probeTime = 500 * time.Millisecond

// arrives says whether the next packet has a number.
func (p *probe) arrives(id byte) bool {
	var got [16]byte
	for end := time.Now().Add(probeTime); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(p.fd, got[:], unix.MSG_DONTWAIT)
		if err == nil {
			return n == 8 && got[1] == id
		}
		wait := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(wait, int(time.Until(end).Milliseconds())+1)
	}
	return false
}
