// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxQueues is the maximum number of receive queues of an interface. Each needs a socket, with memory and a descriptor.
const maxQueues = 1024

// queues has the numbers of an interface's queues. Each receive queue needs a socket; otherwise its frames are lost.
type queues struct {
	count int
	most  int // maximum of the interface
	sends int // send queues in use
	// guessed is set if the driver does not report the number in use, which is then at most count.
	guessed bool
}

// countQueues determines the number of receive queues in use (ethtool -l).
func (b *builder) countQueues() error {
	tool, err := ethtool.NewEthtool()
	if err == nil { // a sandbox may refuse its socket
		b.sending.tool = tool
		b.driver, _ = tool.DriverName(b.base.Attrs().Name) // many virtual interfaces have none
	}
	attrs := b.base.Attrs()
	now, err := channelsOf(b.sending.tool, b.base)
	if err != nil {
		return err
	}
	b.queues = queues{count: now.receive, most: max(attrs.NumRxQueues, now.receive, 1), sends: now.send}
	if now.receive == 0 {
		b.queues.count, b.queues.guessed = b.queues.most, true
	}
	if err := checkQueues(attrs.Name, b.queues.count); err != nil {
		return err
	}
	b.queues.most = min(b.queues.most, maxQueues)
	b.countWorkers()
	return nil
}

// checkQueues rejects more queues than supported.
func checkQueues(name string, count int) error {
	if count <= maxQueues {
		return nil
	}
	return fmt.Errorf("%w: %s has %d receive queues, and roced supports %d: packets on the others would be lost; ethtool -L %[2]s combined %[4]d (or rx %[4]d)",
		verbs.ErrUnsupported, name, count, maxQueues)
}

// openSockets opens a socket for each receive queue.
func (b *builder) openSockets() error {
	for queue := range b.queues.count {
		socket, err := xsk.Open(b.socketConfig(queue))
		if errors.Is(err, xsk.ErrNoQueue) && queue > 0 && b.queues.guessed {
			return nil // the guess was too high; all existing queues have a socket
		}
		if err != nil {
			return fmt.Errorf("queue %d of %d: %w", queue, b.queues.count, b.explainZeroCopy(err))
		}
		b.sockets = append(b.sockets, socket)
		if err := b.steering.SetRing(queue, socket.FD()); err != nil {
			return fmt.Errorf("queue %d of %d: %w", queue, b.queues.count, err)
		}
	}
	return nil
}

// explainZeroCopy adds the remedy if zero-copy is refused because packets need several chunks.
func (b *builder) explainZeroCopy(err error) error {
	if b.maxMTU < wire.MTU4096 || !errors.Is(err, xsk.ErrZeroCopy) {
		return err
	}
	return fmt.Errorf("%w; packets of RDMA MTU 4096 take several chunks, for which few drivers have zero-copy: ip link set dev %s mtu 2200, or do not require zero-copy",
		err, b.base.Attrs().Name)
}

func (b *builder) plan() *socketPlan {
	return &socketPlan{
		name: b.base.Attrs().Name, index: b.base.Attrs().Index, mode: b.modes.socket, frames: b.config.Frames, tuning: b.config.Tuning,
		driver: b.driver, workers: b.workers,
	}
}

func (b *builder) socketConfig(queue int) xsk.Config {
	return b.plan().config(queue, b.queues.count, b.maxMTU)
}

// lockedBytes returns the memory that the sockets lock.
func (b *builder) lockedBytes() (sum uint64) {
	for queue := range b.queues.count {
		c := b.socketConfig(queue)
		perFrame := uint64((c.MaxFrame + c.ChunkSize - 1) / c.ChunkSize)
		sum += (2*uint64(c.RxSize) + perFrame*uint64(c.TxFrames)) * uint64(c.ChunkSize)
	}
	return sum
}

// channels has the numbers of queues that an interface uses (ethtool -l).
type channels struct {
	receive int // 0: the driver does not report it
	send    int
}

// channelsOf queries the queues of an interface. tool is nil if a sandbox refuses its socket.
func channelsOf(tool *ethtool.Ethtool, link netlink.Link) (c channels, err error) {
	attrs := link.Attrs()
	c.send = max(attrs.NumTxQueues, 1)
	if isAggregate(link) {
		c.send = 1 // its queues are nominal: its slaves choose
	}
	if tun, ok := link.(*netlink.Tuntap); ok {
		c.receive = tun.Queues
	}
	if tool == nil {
		return c, nil
	}
	said, err := tool.GetChannels(attrs.Name)
	switch {
	case errors.Is(err, unix.ENODEV): // it was just renamed or deleted
		return c, fmt.Errorf("ethtool %s: %w", attrs.Name, err)
	case err != nil:
		return c, nil
	}
	return channels{receive: int(said.RxCount + said.CombinedCount), send: max(1, int(said.TxCount+said.CombinedCount))}, nil
}

// speedOf queries an interface's speed in Mbit/s; 0 if it is unknown.
func speedOf(tool *ethtool.Ethtool, name string) int {
	if tool == nil {
		return 0
	}
	var command ethtool.EthtoolCmd
	speed, err := tool.CmdGet(&command, name)
	if err != nil || int32(speed) <= 0 { // unknown: -1, or 0
		return 0
	}
	return int(speed)
}
