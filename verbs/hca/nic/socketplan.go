// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
)

const (
	// receiveBudget limits the memory of all sockets for receiving, in bytes, but each ring has at least fewestFrames:
	// with 1024 queues that is 256 MiB.
	receiveBudget = 128 << 20
	mostFrames    = 2048 // of a ring
	fewestFrames  = 64
	// idleFrames is the size of the send rings of sockets that do not send: all except the first of each worker.
	idleFrames = 16
)

// socketPlan has the parameters of an interface's sockets.
type socketPlan struct {
	name   string // of the interface at opening
	index  int    // of the interface
	mode   xsk.Mode
	frames uint32 // of each ring, as requested; 0: as the budget allows
	tuning Tuning
	driver string
	// The queues are divided among the workers in turn; each sends through the socket of its first queue.
	workers int
}

// wholeKilobytes lists the drivers that in zero-copy mode round a chunk's room down to kilobytes, as the NIC counts it,
// and lose frames that do not fit the rest. Seen with igb of Linux 7.3; igc's NICs count in the same way.
var wholeKilobytes = []string{"igb", "igc"}

// room returns the maximum length of a frame in one chunk.
func (p *socketPlan) room(chunk uint32) uint32 {
	const reserved = 256 // the kernel reserves this much of a chunk when it receives
	if p.mode != xsk.Copy && slices.Contains(wholeKilobytes, p.driver) {
		return (chunk - reserved) &^ 1023
	}
	return chunk - reserved
}

// config returns the configuration of a queue's socket. Chunks are as small as the largest frame of an RDMA MTU allows,
// so that more of them fit the processor's cache.
func (p *socketPlan) config(queue, queues int, mtu wire.MTU) xsk.Config {
	frame := uint32(wire.MaxHeaders + mtu.Bytes() + wire.MaxTrailer)
	c := xsk.Config{
		Interface: p.index, Queue: queue, Mode: p.mode, ChunkSize: 2048, MaxFrame: frame,
		BusyPoll: p.tuning.BusyPoll, BusyPollBudget: p.tuning.BusyPollBudget,
	}
	if frame > p.room(c.ChunkSize) {
		c.ChunkSize = 4096
	}
	c.MultiBuffer = frame > p.room(c.ChunkSize)
	c.RxSize = framesFor(queues, c.ChunkSize, p.frames)
	c.TxFrames = idleFrames
	if queue < p.workers {
		c.TxFrames = cmp.Or(p.frames, mostFrames)
	}
	return c
}

// framesFor returns the size of each queue's ring, in frames: the requested one, or the largest that keeps all rings
// within the budget. A ring has chunks for twice as many frames.
func framesFor(queues int, chunk, asked uint32) uint32 {
	if asked != 0 {
		return asked
	}
	each := uint32(receiveBudget / queues / int(2*chunk))
	return min(max(uint32(1)<<(bits.Len32(each|1)-1), fewestFrames), mostFrames)
}
