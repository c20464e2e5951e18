// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/hack/bench/harness"
)

const linkName = "eth0"

// linkIndex returns the index of the interface in the calling thread's namespace.
func linkIndex() (int, error) {
	link, err := net.InterfaceByName(linkName)
	if err != nil {
		return 0, err
	}
	return link.Index, nil
}

// rawSocket opens an AF_XDP socket on the interface's only queue, and attaches an XDP program that redirects all frames
// to it.
func rawSocket(j harness.Job) (*xsk.Socket, error) {
	index, err := linkIndex()
	if err != nil {
		return nil, err
	}
	socket, err := xsk.Open(xsk.Config{Interface: index, BusyPoll: j.Tuning.BusyPoll, BusyPollBudget: j.Tuning.BusyPollBudget})
	if err != nil {
		return nil, err
	}
	rings, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	if err := rings.Put(uint32(0), uint32(socket.FD())); err != nil {
		return nil, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.LoadMapPtr(asm.R1, rings.FD()),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Imm(asm.R3, 2), // XDP_PASS
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}})
	if err != nil {
		return nil, err
	}
	_, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: index, Flags: link.XDPDriverMode})
	return socket, err
}

// rawFrame returns a frame of the same length as roced's frame for the same payload.
func rawFrame(j harness.Job) []byte {
	own, _ := net.ParseMAC(j.Own.MAC)
	peer, _ := net.ParseMAC(j.Peer.MAC)
	template := wire.NewTemplate(wire.Path{
		SourceMAC: wire.MAC(own), DestMAC: wire.MAC(peer),
		Source: wire.GIDFromAddr(netip.MustParseAddr(j.Own.Address)), Dest: wire.GIDFromAddr(netip.MustParseAddr(j.Peer.Address)),
	})
	frame := make([]byte, 4096)
	return frame[:template.Seal(frame, &wire.Datagram{DestQP: wire.QPN(j.Peer.QPN), SourceQP: 2, QKey: qkey, PKey: wire.PKeyDefault}, j.Size)]
}

func rawReceive(j harness.Job) (harness.Result, error) {
	restore, err := j.Tuning.Apply(linkName)
	if err != nil {
		return harness.Result{}, err
	}
	socket, err := rawSocket(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var burst [64]xsk.Received
	var m harness.Meter
	var sum uint64
	for !harness.Stopping.Load() {
		n := socket.Receive(burst[:])
		if n == 0 {
			socket.WakeReceive()
			continue
		}
		for _, frame := range burst[:n] {
			if len(frame.Data) >= 50 { // not ARP
				sum += binary.LittleEndian.Uint64(frame.Data[42:]) // like a program that reads its data
			}
		}
		socket.Release()
		m.Add(n)
	}
	return m.Result(), restore()
}

func rawSend(j harness.Job) (harness.Result, error) {
	restore, err := j.Tuning.Apply(linkName)
	if err != nil {
		return harness.Result{}, err
	}
	socket, err := rawSocket(j)
	if err != nil {
		return harness.Result{}, err
	}
	frame := rawFrame(j)
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; {
		n := 0
		for ; n < 64; n++ {
			reserved, ok := socket.Reserve()
			if !ok {
				break
			}
			copy(reserved.Bytes(), frame)
			socket.Submit(reserved, len(frame))
		}
		socket.Flush()
		m.Add(n)
	}
	return m.Result(), restore()
}
