package host

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxFiltered is the most interfaces for which there is a filter. The filter compares with one
// after the other, and a jump reaches at most 255 instructions.
const maxFiltered = 64

// filterFor is a socket filter that drops notifications about links, addresses and neighbours of
// all interfaces but these. Otherwise a host where thousands of them come and go would overflow the
// socket, and after each overflow everything must be asked again. For more than maxFiltered
// interfaces it drops none. Each notification is a message of its own:
//
//	 0  nlmsghdr   16  type at 4
//	16  ifinfomsg, ifaddrmsg, ndmsg: family at 0, index at 4
func filterFor(indexes []int) []unix.SockFilter {
	const typeAt, familyAt, indexAt = 4, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr + 4
	program := []unix.SockFilter{
		0: load(unix.BPF_H, typeAt),
		1: jump(network16(unix.RTM_NEWLINK), 6, 0),
		2: jump(network16(unix.RTM_DELLINK), 5, 0),
		3: jump(network16(unix.RTM_NEWADDR), 4, 0),
		4: jump(network16(unix.RTM_DELADDR), 3, 0),
		5: jump(network16(unix.RTM_NEWNEIGH), 2, 0),
		6: jump(network16(unix.RTM_DELNEIGH), 1, 0),
		7: keepAll,
	}
	if len(indexes) <= maxFiltered {
		program = append(program, load(unix.BPF_W, indexAt))
		for i, index := range indexes {
			program = append(program, jump(network32(uint32(index)), uint8(len(indexes)-i), 0))
		}
		program = append(program, keepNone)
	}
	// Drop the messages about interfaces as bridge ports, which come in addition.
	return append(program, load(unix.BPF_B, familyAt), jump(unix.AF_BRIDGE, 0, 1), keepNone, keepAll)
}

var (
	keepAll  = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0xFFFFFFFF}
	keepNone = unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
)

func load(size uint16, at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: at}
}

// jump skips yes instructions if the loaded value equals value, else no instructions.
func jump(value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jt: yes, Jf: no}
}

// network16 converts a number in the host's byte order to the value that a filter loads, which
// reads memory in network byte order.
func network16(n uint16) uint32 {
	return uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, n)))
}

func network32(n uint32) uint32 {
	return binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, n))
}
