// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/server"
)

// Serve runs a service with devices in this process and returns its socket. Limits and privileges are the
// defaults.
func Serve(t *testing.T, devices ...server.Source) (socket string) {
	t.Helper()
	s, err := server.New(server.Config{Devices: devices, PrivilegedGroup: -1})
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "roced.sock")
	listener, err := net.Listen("unixpacket", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// ServeMemory is Serve with two devices, left (10.77.0.1) and right (10.77.0.2), on an in-memory network.
func ServeMemory(t *testing.T) (socket string) {
	t.Helper()
	return ServeImpaired(t, memnet.Impairment{})
}

// ServeImpaired is ServeMemory on an impaired network.
func ServeImpaired(t *testing.T, wrong memnet.Impairment, options ...hca.Option) (socket string) {
	t.Helper()
	network := memnet.New(0)
	if err := network.Impair(wrong); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	var devices []server.Source
	for name, address := range map[string]string{"left": "10.77.0.1", "right": "10.77.0.2"} {
		host, err := network.AddHost(name, netip.MustParseAddr(address))
		if err != nil {
			t.Fatal(err)
		}
		card, err := hca.New(host, append(options, hca.WithoutInline())...)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, card)
	}
	return Serve(t, devices...)
}
