package udplink

import (
	"errors"
	"fmt"
	"net/netip"
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
// of a train can be known too, otherwise why not. It sends four packets on the loopback interface of the calling thread's
// namespace.
func Probe() (trains, err error) {
	fd, err := newUDP(unix.AF_INET, sendOptions[unix.AF_INET])
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	home := &unix.SockaddrInet4{Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}).As4()}
	if err := errors.Join(filter(fd, numberFilter), unix.Bind(fd, home)); err != nil {
		return fmt.Errorf("how this kernel numbers packets cannot be seen: %w", err), nil
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	if err := unix.Sendto(fd, probeOf(0), unix.MSG_DONTWAIT, self); err != nil {
		return fmt.Errorf("how this kernel numbers packets cannot be tried: %w; is the interface lo up (ip link set lo up)?", err), nil
	}
	if !arrives(fd, 0) {
		return nil, ErrNumbering
	}
	var train []byte
	for i := range byte(3) {
		train = append(train, probeOf(i)...)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, len(train)/3); err != nil {
		return fmt.Errorf("this kernel does not make packets of trains: %w", err), nil
	}
	if err := unix.Sendto(fd, train, unix.MSG_DONTWAIT, self); err != nil {
		return fmt.Errorf("this kernel does not make packets of trains: %w", err), nil
	}
	for i := range byte(3) {
		if !arrives(fd, i) {
			return fmt.Errorf("this kernel does not number the packets of a train 0, 1, 2: packet %d has not come", i), nil
		}
	}
	return nil, nil
}

func probeOf(id byte) []byte { return []byte{0, id, 'r', 'o', 'c', 'e', 'd', 0} }

// netHeader is where a filter finds the network header (SKF_NET_OFF in linux/filter.h).
const netHeader = 0xFFF00000

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
func arrives(fd int, id byte) bool {
	var got [16]byte
	for end := time.Now().Add(probeTime); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(fd, got[:], unix.MSG_DONTWAIT)
		if err == nil {
			return n == 8 && got[1] == id
		}
		wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, _ = unix.Poll(wait, int(time.Until(end).Milliseconds())+1)
	}
	return false
}
