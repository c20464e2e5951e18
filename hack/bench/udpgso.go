// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

// The fastest use of UDP: the sender passes trains of equal segments to the kernel (UDP_SEGMENT), and the receiver
// reads them as trains (UDP_GRO). This requires one sending and one receiving socket, and equal message sizes.
//
// veth passes a train on as one buffer of 64 KiB, without the packets that a physical link would have. With an XDP
// program on the receiving side, even one that passes all packets, the kernel segments trains and merges them again:
// "udp gso cut".

const (
	trainSegments = 64    // UDP_MAX_SEGMENTS before Linux 6.9
	trainBytes    = 65000 // fits into an IP packet
	trains        = 8     // trains per system call
)

// segments returns the number of messages of a size in a train.
func segments(size int) int { return min(trainSegments, trainBytes/size) }

func udpSendTrains(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, time.Second)
	if err != nil {
		return harness.Result{}, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, j.Size); err != nil {
		return harness.Result{}, err
	}
	each := segments(j.Size)
	batch := newMessageBatch(trains, each*j.Size)
	batch.oneBuffer()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; {
		if n, err := batch.send(fd); err == nil {
			m.Add(n * each)
		}
	}
	return m.Result(), nil
}

func udpReceiveTrains(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, 100*time.Millisecond)
	if err != nil {
		return harness.Result{}, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
		return harness.Result{}, err
	}
	batch := newMessageBatch(trains, 1<<16)
	batch.addControl()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for !harness.Stopping.Load() {
		n, err := batch.receive(fd)
		if err != nil {
			continue
		}
		for i := range n {
			m.Add(messagesIn(int(batch.headers[i].length), batch.control(i)))
		}
	}
	return m.Result(), nil
}

// udpReceiveCutTrains is like udpReceiveTrains, with an XDP program on the interface.
func udpReceiveCutTrains(j harness.Job) (harness.Result, error) {
	index, err := linkIndex()
	if err != nil {
		return harness.Result{}, err
	}
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R0, 2), // XDP_PASS
		asm.Return(),
	}})
	if err != nil {
		return harness.Result{}, err
	}
	attached, err := link.AttachXDP(link.XDPOptions{Program: pass, Interface: index, Flags: link.XDPDriverMode})
	if err != nil {
		return harness.Result{}, err
	}
	r, err := udpReceiveTrains(j)
	return r, errors.Join(err, attached.Close())
}

// messagesIn returns the number of messages in a train of length bytes. The control message UDP_GRO contains the
// segment size. Without it the data is a single message.
func messagesIn(length int, control []byte) int {
	if len(control) < unix.CmsgLen(4) {
		return 1
	}
	size := int(binary.NativeEndian.Uint32(control[unix.CmsgLen(0):]))
	return (length + size - 1) / size
}
