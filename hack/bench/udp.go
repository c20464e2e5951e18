// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"runtime"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

const (
	udpPort  = 7000
	udpBatch = 64
)

// udpSocket opens a socket that is bound to the host's address and connected to the peer's, which is faster than an
// unconnected one.
func udpSocket(j harness.Job, timeout time.Duration) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	own := unix.SockaddrInet4{Port: udpPort, Addr: netip.MustParseAddr(j.Own.Address).As4()}
	peer := unix.SockaddrInet4{Port: udpPort, Addr: netip.MustParseAddr(j.Peer.Address).As4()}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &own); err != nil {
		return -1, err
	}
	return fd, unix.Connect(fd, &peer)
}

func udpReceive(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, 100*time.Millisecond)
	if err != nil {
		return harness.Result{}, err
	}
	batch := newMessageBatch(udpBatch, 2048)
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for !harness.Stopping.Load() {
		n, err := batch.receive(fd)
		if err == nil {
			m.Add(n)
		}
	}
	return m.Result(), nil
}

func udpSend(j harness.Job) (harness.Result, error) {
	return udpStream(j, func(int) error { return nil })
}

// udpStream sends batches for the job's duration, on a socket that prepare has configured.
func udpStream(j harness.Job, prepare func(fd int) error) (harness.Result, error) {
	fd, err := udpSocket(j, time.Second)
	if err != nil {
		return harness.Result{}, err
	}
	if err := prepare(fd); err != nil {
		return harness.Result{}, err
	}
	batch := newMessageBatch(udpBatch, j.Size)
	batch.oneBuffer()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var m harness.Meter
	for start := time.Now(); time.Since(start) < j.Duration; {
		if n, err := batch.send(fd); err == nil {
			m.Add(n)
		}
	}
	return m.Result(), nil
}

func udpPong(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, 100*time.Millisecond)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	message := make([]byte, 2048)
	for !harness.Stopping.Load() {
		if n := udpRead(fd, message, j.Sleep); n > 0 {
			_, _ = unix.Write(fd, message[:n])
		}
	}
	return harness.Result{}, nil
}

func udpPing(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, 100*time.Millisecond)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	message := make([]byte, j.Size)
	return measureTrips(j.Count, func() bool {
		_, _ = unix.Write(fd, message)
		for start := time.Now(); time.Since(start) < tripTimeout; {
			if udpRead(fd, message, j.Sleep) > 0 {
				return true
			}
		}
		return false
	}), nil
}

// udpRead reads a message. With sleep it blocks in the kernel, else it does not wait.
func udpRead(fd int, message []byte, sleep bool) int {
	flags := unix.MSG_DONTWAIT
	if sleep {
		flags = 0
	}
	n, _, err := unix.Recvfrom(fd, message, flags)
	if err != nil {
		return 0
	}
	return n
}

// tripTimeout is the time after which a round trip's message is lost.
const tripTimeout = 100 * time.Millisecond

// measureTrips measures round trips, after count/10 unmeasured ones as a warm-up.
func measureTrips(count int, trip func() bool) harness.Result {
	runtime.GC()
	r := harness.Result{RoundTrips: make([]time.Duration, 0, count)}
	for range count / 10 {
		trip()
	}
	busy, switches := machineTime(), contextSwitches()
	for range count {
		start := time.Now()
		if trip() {
			r.RoundTrips = append(r.RoundTrips, time.Since(start))
		}
	}
	r.Busy, r.Switches = machineTime()-busy, contextSwitches()-switches
	return r
}
