// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"errors"
	"net"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestOpenOfNoLink(t *testing.T) {
	if _, err := Open(labtest.Pair(t).A, "eth9"); err == nil {
		t.Error("opened a missing link")
	}
}

// TestFramesLost: lost frames are reported.
func TestFramesLost(t *testing.T) {
	hosts := labtest.Pair(t)
	s, err := Open(hosts.A, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 0); err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	err = hosts.B.Do(func() (err error) {
		conn, err = net.Dial("udp", "[ff02::1%eth0]:4791") // multicast needs no neighbour entry
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 1000 {
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err = range s.Frames() {
	}
	if !errors.Is(err, unix.ENOBUFS) {
		t.Errorf("after a thousand frames: %v", err)
	}
}
