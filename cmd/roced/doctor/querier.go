// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Protocols of multicast membership queries.
const (
	igmp = "IGMP"
	mld  = "MLD"
)

// Message types. An IPv4 raw socket also returns the IP header.
const (
	igmpQuery = 0x11
	mldQuery  = 130
)

// listenForQueries listens on an interface for the given time, or until queries of both protocols were
// received.
func listenForQueries(ctx context.Context, index int, listen time.Duration) map[string]bool {
	received := map[string]bool{}
	if listen <= 0 {
		return received
	}
	var list []unix.PollFd
	for _, s := range []struct{ family, protocol int }{{unix.AF_INET, unix.IPPROTO_IGMP}, {unix.AF_INET6, unix.IPPROTO_ICMPV6}} {
		fd, err := unix.Socket(s.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, s.protocol)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index) == nil {
			list = append(list, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	for deadline := time.Now().Add(listen); time.Now().Before(deadline) && len(received) < 2 && ctx.Err() == nil; {
		_, err := unix.Poll(list, 100) // short, to check ctx regularly
		if err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
		for _, p := range list {
			receive(int(p.Fd), received)
		}
	}
	return received
}

// receive reads the packets that are waiting at a socket and records the queries.
func receive(fd int, received map[string]bool) {
	packet := make([]byte, 256)
	for {
		n, _, err := unix.Recvfrom(fd, packet, 0)
		if err != nil {
			return
		}
		if isIPv4 := n > 20 && packet[0]>>4 == 4; isIPv4 {
			if header := int(packet[0]&15) * 4; n > header && packet[header] == igmpQuery {
				received[igmp] = true
			}
		} else if n > 0 && packet[0] == mldQuery {
			received[mld] = true
		}
	}
}
