// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxFiltered is the maximum number of interfaces in a filter, which compares them one after the other: a
// jump reaches at most 255 instructions.
const maxFiltered = 64

var (
	// aboutInterfaces lists the types of notifications about one interface.
	aboutInterfaces = []uint16{
		unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH, unix.RTM_NEWQDISC, unix.RTM_DELQDISC,
	}
	// unwanted lists the types that arrive with those about queueing disciplines.
	unwanted = []uint16{
		unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER,
		unix.RTM_NEWACTION, unix.RTM_DELACTION, unix.RTM_NEWCHAIN, unix.RTM_DELCHAIN,
	}
)

// filterFor returns a socket filter that drops notifications about links, addresses, neighbours and queueing
// disciplines of other interfaces. Otherwise a host on which thousands of interfaces come and go would
// overflow the socket, and each overflow requires querying everything. For more than maxFiltered interfaces
// it drops only the unwanted types. Each notification is a separate message:
//
//	 0  nlmsghdr   16  type at 4
//	16  ifinfomsg, ifaddrmsg, ndmsg, tcmsg: family at 0, index at 4
func filterFor(indexes []int) []unix.SockFilter {
	const typeAt, familyAt, indexAt = 4, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr + 4
	program := []unix.SockFilter{load(unix.BPF_H, typeAt)}
	for _, kind := range unwanted {
		program = append(program, jump(network16(kind), 0, 1), keepNone)
	}
	for i, kind := range aboutInterfaces {
		program = append(program, jump(network16(kind), uint8(len(aboutInterfaces)-i), 0))
	}
	program = append(program, keepAll)
	if len(indexes) <= maxFiltered {
		program = append(program, load(unix.BPF_W, indexAt))
		for i, index := range indexes {
			program = append(program, jump(network32(uint32(index)), uint8(len(indexes)-i), 0))
		}
		program = append(program, keepNone)
	}
	// Drop the additional messages about interfaces as bridge ports.
	return append(program, load(unix.BPF_B, familyAt), jump(unix.AF_BRIDGE, 0, 1), keepNone, keepAll)
}

var (
	keepAll  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFFFFFF}
	keepNone = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
)

func load(size uint16, at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
}

// jump skips yes instructions if the loaded value equals value, otherwise no instructions.
func jump(value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: yes, Jf: no}
}

// network16 converts a number in host byte order to the value that a filter loads, which
// reads memory in network byte order.
func network16(n uint16) uint32 {
	return uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, n)))
}

func network32(n uint32) uint32 {
	return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n))
}
