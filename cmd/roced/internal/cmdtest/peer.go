// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"bufio"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// PingpongAddress is the first message of ibv_ud_pingpong with a queue pair at 10.77.0.1.
var PingpongAddress = string(meet.Destination{QPN: 0x4a, PSN: 0xf00baa, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 1}}.Message())

// ListenOnA listens in namespace A on any port.
func ListenOnA(t *testing.T, hosts *labtest.PairLab) (listener net.Listener) {
	t.Helper()
	err := hosts.A.Do(func() (err error) {
		listener, err = net.Listen("tcp", "10.77.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// FakeServer listens in namespace A and calls play for each client, after the exchange of addresses and the
// client's request.
func FakeServer(t *testing.T, hosts *labtest.PairLab, play func(conn net.Conn)) (port string) {
	t.Helper()
	listener := ListenOnA(t, hosts)
	ended := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			meet.Answer(conn, &meet.Terms{}, 1, func(peer meet.Destination) (meet.Destination, error) {
				return meet.Destination{QPN: 0x1234, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 1}}, nil
			})
			bufio.NewReader(conn).ReadString('\n')
			play(conn)
			conn.Close()
		}
	}()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// Dial connects from a network namespace.
func Dial(namespace, target string) (conn net.Conn, err error) {
	err = hca.RunIn(namespace, func() (err error) {
		conn, err = net.Dial("tcp", target)
		return err
	})
	return conn, err
}

// StartWaiting starts a server for one client and returns its TCP port.
func StartWaiting(t *testing.T, args []string) (b *Background, port string) {
	t.Helper()
	b = Start(t, append(args, "-p", "0")...)
	_, address, _ := strings.Cut(b.Await(t, "waiting for "), " on ")
	address, _, _ = strings.Cut(address, ": ")
	return b, strconv.Itoa(int(netip.MustParseAddrPort(address).Port()))
}
