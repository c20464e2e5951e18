package host

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// keepOwn has the kernel pass over news of links, addresses and neighbours of other
// interfaces: a host where thousands of those come and go must not fill the socket, which
// would mean that everything is looked at again. Each piece of news is a message of its own:
//
//	 0  nlmsghdr   16  type at 4
//	16  ifinfomsg, ifaddrmsg, ndmsg: family at 0, index at 4
func keepOwn(fd, index int) error {
	const typeAt, familyAt, indexAt = 4, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr + 4
	const all, none = 0xFFFFFFFF, 0
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
	}
	jump := func(test uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: yes, Jf: no}
	}
	answer := func(bytes uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: bytes}
	}
	program := []unix.SockFilter{
		0:  load(unix.BPF_H, typeAt),
		1:  jump(unix.BPF_JEQ, network16(unix.RTM_NEWLINK), 6, 0),
		2:  jump(unix.BPF_JEQ, network16(unix.RTM_DELLINK), 5, 0),
		3:  jump(unix.BPF_JEQ, network16(unix.RTM_NEWADDR), 4, 0),
		4:  jump(unix.BPF_JEQ, network16(unix.RTM_DELADDR), 3, 0),
		5:  jump(unix.BPF_JEQ, network16(unix.RTM_NEWNEIGH), 2, 0),
		6:  jump(unix.BPF_JEQ, network16(unix.RTM_DELNEIGH), 1, 0),
		7:  answer(all),
		8:  load(unix.BPF_W, indexAt),
		9:  jump(unix.BPF_JEQ, network32(uint32(index)), 1, 0),
		10: answer(none),
		11: load(unix.BPF_B, familyAt),
		12: jump(unix.BPF_JEQ, unix.AF_BRIDGE, 0, 1),
		13: answer(none),
		14: answer(all),
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// network16 is a number of the host's byte order as a filter loads it: in the network's.
func network16(n uint16) uint32 {
	return uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, n)))
}

func network32(n uint32) uint32 {
	return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n))
}
