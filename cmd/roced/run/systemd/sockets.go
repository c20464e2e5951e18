// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// MetricsName is the FileDescriptorName= of a metrics socket. All other sockets are for programs.
const MetricsName = "metrics"

// Sockets holds the sockets that the service manager has bound.
type Sockets struct {
	Programs []net.Listener
	Metrics  []net.Listener
}

// AcquireSockets returns the sockets passed by the service manager. It can be called once. If one has an unsupported
// type, AcquireSockets closes all and returns an error.
func AcquireSockets() (Sockets, error) {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return Sockets{}, fmt.Errorf("sockets from systemd: %w", err)
	}
	s, err := sortSockets(passed)
	if err != nil {
		for _, list := range passed {
			for _, l := range list {
				l.Close()
			}
		}
		return Sockets{}, err
	}
	return s, nil
}

func sortSockets(passed map[string][]net.Listener) (s Sockets, err error) {
	for name, list := range passed {
		for _, l := range list {
			if name == MetricsName {
				s.Metrics = append(s.Metrics, l)
				continue
			}
			u, is := l.(*net.UnixListener)
			if !is || u.Addr().Network() != "unixpacket" {
				return s, fmt.Errorf("%w: unsupported type of socket %s (%s) from systemd: %s; use ListenSequentialPacket= with a path for programs, and FileDescriptorName=%s for metrics",
					unix.EPROTOTYPE, l.Addr(), name, l.Addr().Network(), MetricsName)
			}
			u.SetUnlinkOnClose(false)
			s.Programs = append(s.Programs, u)
		}
	}
	return s, nil
}
