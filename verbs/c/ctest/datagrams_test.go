// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/needs"
)

// TestDatagramsByUDP: on an interface of the host, datagram sockets find each other by UDP sockets.
func TestDatagramsByUDP(t *testing.T) {
	needs.Tools(t, "/usr/include/rdma/rsocket.h")
	if err := labtest.Pair(t).A.Do(func() error {
		newCMRig(t, "--device", "eth0", "--network", "udp").run(t, "datagrams", "10.77.0.1", "udp")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
