// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

const joinCount = 1000

func joinAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{239, 2, byte(i >> 8), byte(i)}) }

// joins measures 1000 joins of one program, and of 1000 sockets.
func (b *bench) joins() error {
	for _, variant := range []string{"udp", "worker"} {
		var all []float64
		for range b.Rounds {
			c, err := harness.Start(harness.Job{Role: "join", Variant: variant, Namespace: b.a.Path(), Own: b.left, Peer: b.right})
			if err != nil {
				return err
			}
			r, err := c.Finish(false)
			if err != nil {
				return err
			}
			all = append(all, r.Elapsed.Seconds())
		}
		b.Add(harness.Record{Name: "1000 joins", Variant: variant, Seconds: harness.Median(all)})
	}
	return nil
}

// udpJoin measures the kernel alone.
func udpJoin(harness.Job) (harness.Result, error) {
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	start := time.Now()
	for i := range joinCount {
		if _, err := joinedSocket(joinAddress(i)); err != nil {
			return harness.Result{}, err
		}
	}
	return harness.Result{Elapsed: time.Since(start)}, nil
}

// joinedSocket opens a socket that is a member of a group on the interface.
func joinedSocket(group netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	index, err := linkIndex()
	if err != nil {
		return -1, err
	}
	return fd, unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)})
}

func rocedJoin(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	start := time.Now()
	for i := range joinCount {
		if _, err := p.ctx.JoinMulticast(joinAddress(i), verbs.JoinFullMember); err != nil {
			return harness.Result{}, err
		}
	}
	elapsed := time.Since(start)
	return harness.Result{Elapsed: elapsed}, p.close()
}
