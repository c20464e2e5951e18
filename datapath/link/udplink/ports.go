// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// ports holds the sending sockets, each bound to a source port. Routers distribute flows over parallel links by source
// port, and receivers distribute them over processors. The sockets receive nothing.
type ports struct {
	numbers wire.SourcePorts
	opened  int
	v4, v6  []int // descriptors, in the order of the numbers; v6 is empty if the kernel has no IPv6
}

// The range of RoCEv2 source ports (rdma_flow_label_to_udp_sport in Linux).
const firstPort, portCount = 0xC000, 0x4000

// openPorts opens the sending sockets, in the network namespace of the calling thread.
func openPorts() (p ports, err error) {
	for range p.numbers {
		if err := p.open(); err != nil {
			return p, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// open opens sending sockets on one more port that is free.
func (p *ports) open() (err error) {
	for range 100 {
		number := uint16(firstPort + rand.IntN(portCount))
		if err = p.openNumber(number); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return err
}

func (p *ports) openNumber(number uint16) error {
	v4, err := openPort(unix.AF_INET, number)
	if err != nil {
		return err
	}
	v6, err := openPort(unix.AF_INET6, number)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return errors.Join(err, unix.Close(v4))
	}
	p.v4 = append(p.v4, v4)
	if err == nil {
		p.v6 = append(p.v6, v6)
	}
	p.numbers[p.opened] = number
	p.opened++
	return nil
}

// sendOptions are the options of sending sockets. They set Don't Fragment, so that sending a datagram longer than the
// interface's MTU fails. Smaller MTUs that routers report are ignored (IP_PMTUDISC_PROBE, not IP_PMTUDISC_DO), as such
// reports can be forged to break connections. Packets to a group are not looped back, because the card itself delivers
// them to its members.
var sendOptions = map[int][]option{
	unix.AF_INET: {{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE}, {unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0}},
	unix.AF_INET6: {
		{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE}, {unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 0},
	},
}

func openPort(family int, number uint16) (fd int, err error) {
	if fd, err = newUDP(family, sendOptions[family]); err != nil {
		return -1, err
	}
	var all unix.Sockaddr = &unix.SockaddrInet4{Port: int(number)}
	if family == unix.AF_INET6 {
		all = &unix.SockaddrInet6{Port: int(number)}
	}
	if err = mute(fd); err == nil {
		err = unix.Bind(fd, all)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("bind UDP port %d: %w", number, err), unix.Close(fd))
	}
	enlarge(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	return fd, nil
}

// place returns the place of the socket that sends a frame: the index of its source port in numbers, plus the number of
// ports for IPv6.
func (p *ports) place(at headers) uint8 {
	place := max(0, slices.Index(p.numbers[:], at.sourcePort()))
	if at.six {
		place += len(p.numbers)
	}
	return uint8(place)
}

// socket returns the descriptor at a place; -1 if the kernel has no IPv6.
func (p *ports) socket(place uint8) int {
	switch i := int(place); {
	case i < len(p.v4):
		return p.v4[i]
	case i-len(p.numbers) < len(p.v6):
		return p.v6[i-len(p.numbers)]
	}
	return -1
}

func (p *ports) close() (err error) {
	for _, list := range [][]int{p.v4, p.v6} {
		for _, fd := range list {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
