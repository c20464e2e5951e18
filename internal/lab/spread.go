// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// SpreadByPort sends packets with an odd source port, of UDP or TCP, through an interface's second queue, and
// others through the first, until it is closed. At the other end of a veth pair they arrive at the same
// queues, as with a network card's hash. By default the kernel forwards a packet through the queue with the
// number of its receive queue.
func (ns *Namespace) SpreadByPort(name string) (end io.Closer, err error) {
	to, err := ns.nl.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find %s in %s: %w", name, ns.name, err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "spread", Type: ebpf.SchedCLS, Instructions: spread})
	if err != nil {
		return nil, fmt.Errorf("load program that spreads packets over queues: %w", err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	at := to.Attrs().Index
	actions := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: at, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err = ns.nl.QdiscReplace(actions); err != nil {
		return nil, fmt.Errorf("add clsact to %s in %s: %w", name, ns.name, err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: at, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          program.FD(), Name: "spread", DirectAction: true,
	}
	if err = ns.nl.FilterAdd(filter); err != nil {
		return nil, fmt.Errorf("spread packets of %s in %s over queues: %w", name, ns.name, err)
	}
	return spreading{ns, filter}, nil
}

// spreading is a filter that spreads packets. Before Linux 6.6 it can only be attached through this queueing
// discipline.
type spreading struct {
	ns     *Namespace
	filter netlink.Filter
}

// Close implements io.Closer.
func (s spreading) Close() error { return s.ns.nl.FilterDel(s.filter) }

const (
	queueMapping = 12 // in struct __sk_buff: the receive queue, counted from 1
	unspecified  = -1 // TC_ACT_UNSPEC: continue
	// Offsets in a frame.
	etherType = 12
	portOfIP4 = 34
	portOfIP6 = 54
)

// spread sets the receive queue of each packet, which determines the queue that it is sent through.
var spread = asm.Instructions{
	asm.Mov.Reg(asm.R6, asm.R1),
	asm.LoadAbs(etherType, asm.Half),
	asm.JEq.Imm(asm.R0, unix.ETH_P_IPV6, "IPv6"),
	asm.JNE.Imm(asm.R0, unix.ETH_P_IP, "next"),
	asm.LoadAbs(portOfIP4, asm.Half),
	asm.Ja.Label("port"),
	asm.LoadAbs(portOfIP6, asm.Half).WithSymbol("IPv6"),
	asm.And.Imm(asm.R0, 1).WithSymbol("port"),
	asm.Add.Imm(asm.R0, 1),
	asm.StoreMem(asm.R6, queueMapping, asm.R0, asm.Word),
	asm.Mov.Imm(asm.R0, unspecified).WithSymbol("next"),
	asm.Return(),
}

// ArrivedByQueue returns the number of packets received by each queue of a veth end while it has an XDP
// program.
func (ns *Namespace) ArrivedByQueue(name string) (packets []uint64, err error) {
	err = ns.Do(func() error {
		statistics, err := ethtool.Stats(name)
		for queue := 0; err == nil; queue++ {
			n, is := statistics[fmt.Sprintf("rx_queue_%d_xdp_packets", queue)]
			if !is {
				break
			}
			packets = append(packets, n)
		}
		return err
	})
	return packets, err
}
