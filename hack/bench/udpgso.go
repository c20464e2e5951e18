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

// What UDP can do at its best: the sender gives the kernel trains of segments of one size, and the
// receiver takes them as trains. It needs one socket that sends to one socket, and equal sizes.
//
// Over veth a train is never cut: one buffer of 64 KiB changes hands, and there are no packets. On
// a wire there are. A receiving side with an XDP program, even one that passes everything, makes
// the kernel cut trains, and put them together again: "udp gso cut".

const (
	trainSegments = 64    // UDP_MAX_SEGMENTS before Linux 6.9
	trainBytes    = 65000 // less than an IP packet less its headers
	trains        = 8     // a system call
)

// segments is how many messages of a size are in a train.
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

// udpReceiveCutTrains is udpReceiveTrains behind an XDP program.
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

// messagesIn is how many messages a train of so many bytes has. Its control message is a UDP_GRO
// with the size of a segment; without one it is no train.
func messagesIn(length int, control []byte) int {
	if len(control) < unix.CmsgLen(4) {
		return 1
	}
	size := int(binary.NativeEndian.Uint32(control[unix.CmsgLen(0):]))
	return (length + size - 1) / size
}
