// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// TestServerOutlivesClients: a client that disconnects, or uses another protocol, does not end the server.
func TestServerOutlivesClients(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	s := startServer(t, hosts)
	for _, speech := range []string{"", "GET / HTTP/1.1\r\nHost: somewhere.example\r\nAccept: everything\r\n\r\n", cmdtest.PingpongAddress, cmdtest.PingpongAddress + "done\x00", cmdtest.PingpongAddress + "done\x00nonsense\n"} {
		conn := s.dial(t, hosts)
		io.WriteString(conn, speech)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn) // until the server closes the connection
		conn.Close()
	}
	measured(t, s.client("10.77.0.1", "--latency", "--sizes", "64", "-n", "10"))
	s.End(t)
	if log := s.Stderr(); strings.Count(log, "client failed") != 5 || !strings.Contains(log, "ibv_ud_pingpong") {
		t.Errorf("server's log:\n%s", log)
	}
}

// TestServerEndsOnSignal: the server exits with 0 after a signal.
func TestServerEndsOnSignal(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	c := cmdtest.Command(t, "perf", "-d", "eth0", "--netns", hosts.A.Path(), "-p", "0")
	c.Start(t)
	c.Await(t, "waiting for clients")
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.End(t); code != 0 {
		t.Errorf("exit code %d: %s", code, c.Said())
	}
}
