// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Changes of the number of queues of an interface (ethtool -L, also by ioctl) are not in rtnetlink's
// notifications. ethtool's netlink family reports them (ETHTOOL_MSG_CHANNELS_NTF, Linux 5.6):
//
//	 0  nlmsghdr    16
//	16  genlmsghdr   4  command at 0
//	20  ETHTOOL_A_CHANNELS_HEADER: nlattr, then
//	24     ETHTOOL_A_HEADER_DEV_INDEX: nlattr, then the index
const (
	commandAt = unix.SizeofNlMsghdr
	deviceAt  = commandAt + nl.SizeofGenlmsg + 2*unix.SizeofNlAttr
)

// listenToQueues opens a socket for changes of the number of queues in the calling thread's network
// namespace; nil if the kernel does not report them.
func listenToQueues() (*nl.NetlinkSocket, error) {
	family, err := FindGenetlinkFamily(unix.ETHTOOL_GENL_NAME)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	socket, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	group := family.group(unix.ETHTOOL_MCGRP_MONITOR_NAME)
	if group == 0 {
		return socket, nil // without a group it receives nothing
	}
	if err = unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
		socket.Close()
		return nil, fmt.Errorf("netlink group of ethtool: %w", err)
	}
	return socket, nil
}

// filterQueues returns a socket filter that admits only changes of the number of queues of these interfaces;
// for more than maxFiltered, of all.
func filterQueues(indexes []int) []unix.SockFilter {
	program := []unix.SockFilter{load(unix.BPF_B, commandAt), jump(unix.ETHTOOL_MSG_CHANNELS_NTF, 1, 0), keepNone}
	if len(indexes) <= maxFiltered {
		program = append(program, load(unix.BPF_W, deviceAt))
		for i, index := range indexes {
			program = append(program, jump(network32(uint32(index)), uint8(len(indexes)-i), 0))
		}
		program = append(program, keepNone)
	}
	return append(program, keepAll)
}

// readQueues is readChange for notifications of ethtool.
func readQueues(m syscall.NetlinkMessage) (index int, report func(Changes)) {
	const at = deviceAt - unix.SizeofNlMsghdr
	if len(m.Data) < at+4 || m.Data[0] != unix.ETHTOOL_MSG_CHANNELS_NTF {
		return 0, nil
	}
	return int(int32(binary.NativeEndian.Uint32(m.Data[at:]))), Changes.Port
}
