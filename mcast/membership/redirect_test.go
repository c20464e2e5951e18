// SPDX-License-Identifier: Apache-2.0

//go:build !vlan

package membership

// The virtual machines for tests of other kernels (tag vlan) have no NAT. TestNeverTheFirstAddress, which checks the
// address that REDIRECT uses, runs there too.

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
)

// redirects makes a host redirect port 80 to a server on it, and returns a function that connects to the port from
// another host.
func redirects(t *testing.T, host, client *lab.Namespace) (connect func() error) {
	t.Helper()
	needs.Tools(t, "iptables")
	rule := strings.Fields("-w -t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 8080")
	check(t, host.Do(func() error {
		out, err := needs.Command(t, "iptables", rule...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}))
	var server net.Listener
	check(t, host.Do(func() (err error) { server, err = net.Listen("tcp4", ":8080"); return err }))
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("redirected"))
			conn.Close()
		}
	}()
	return func() error {
		var conn net.Conn
		err := client.Do(func() (err error) {
			conn, err = net.DialTimeout("tcp4", "10.77.0.1:80", waittest.Limit)
			return err
		})
		if err != nil {
			return err
		}
		defer conn.Close()
		text, err := io.ReadAll(conn)
		if err == nil && string(text) != "redirected" {
			err = fmt.Errorf("got response %q", text)
		}
		return err
	}
}

// TestRedirect: NAT's REDIRECT, which uses the interface's first address, works before, during and after a join, and
// after the host's address was removed and added again.
func TestRedirect(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			connect := redirects(t, hosts.A, hosts.B)
			m := open(t, hosts.A, way.via)
			check(t, connect())
			check(t, m.Join(way.group))
			check(t, connect())
			flap(t, hosts.A)
			eventually(t, "the own address in front", func() bool { return firstAddress(t, hosts.A) == "10.77.0.1" })
			check(t, connect())
			check(t, m.Leave(way.group))
			check(t, connect())
		})
	}
}
