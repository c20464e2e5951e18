// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

// groupAddress is the group of the fan-out measurements.
const groupAddress = "239.77.0.1"

// fanOut measures the deliveries per second of a group with several receivers on one host.
func (b *bench) fanOut() error {
	for _, size := range []int{64, 1024} {
		for _, receivers := range []int{1, 4, 16, 64} {
			name := fmt.Sprintf("fan-out to %d", receivers)
			err := b.InTurns(name, size, "", []string{"udp", "inline"}, func(variant string) (float64, error) {
				j := harness.Job{Variant: variant, Size: size, Receivers: receivers}
				receiver, sender := j, j
				receiver.Role, sender.Role = "receive group", "send group"
				_, received, err := b.pair(receiver, sender)
				return received.PerSecond, err
			})
			if err != nil {
				return err
			}
		}
		b.Add(harness.Record{Name: "copies alone", Variant: "memmove", Size: size, PerSecond: copies(size, b.Duration)})
	}
	return nil
}

// copies measures only the copies of fan-out: a GRH and a payload to each of 64 buffers.
func copies(size int, duration time.Duration) float64 {
	const receivers, rounds = 64, 1000
	const slots = receivers * memberDepth
	stride := memberSlot(size)
	packet, memory := make([]byte, 40+size), make([]byte, slots*stride)
	count, slot := 0, 0
	start := time.Now()
	for time.Since(start) < duration {
		for range rounds {
			copy(memory[slot*stride:], packet)
			if slot++; slot == slots {
				slot = 0
			}
		}
		count += rounds
	}
	return float64(count) / time.Since(start).Seconds()
}

// udpReceiveGroup reads the job's number of member sockets from one thread with epoll.
func udpReceiveGroup(j harness.Job) (harness.Result, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return harness.Result{}, err
	}
	for range j.Receivers {
		fd, err := groupSocket()
		if err != nil {
			return harness.Result{}, err
		}
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return harness.Result{}, err
		}
	}
	batch := newMessageBatch(udpBatch, 2048)
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	events := make([]unix.EpollEvent, 64)
	for !harness.Stopping.Load() {
		n, err := unix.EpollWait(poll, events, 100)
		if err != nil && err != unix.EINTR {
			return harness.Result{}, err
		}
		for _, event := range events[:max(n, 0)] {
			if got, err := batch.receive(int(event.Fd)); err == nil {
				m.Add(got)
			}
		}
	}
	return m.Result(), nil
}

// groupSocket opens a socket that is a member of the group and bound to its port.
func groupSocket() (int, error) {
	group := netip.MustParseAddr(groupAddress)
	fd, err := joinedSocket(group)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrInet4{Port: udpPort, Addr: group.As4()})
}

func udpSendGroup(j harness.Job) (harness.Result, error) {
	j.Peer.Address = groupAddress
	index, err := linkIndex()
	if err != nil {
		return harness.Result{}, err
	}
	return udpStream(j, func(fd int) error {
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)})
	})
}
