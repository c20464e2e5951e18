package systemd

import (
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// MetricsName is the FileDescriptorName= of a socket for metrics. All others are for programs.
const MetricsName = "metrics"

// Sockets are those that the manager has bound for the service.
type Sockets struct {
	Programs []net.Listener
	Metrics  []net.Listener
}

// TakeSockets takes the sockets that were passed. It can be called once. A socket of a kind that does
// not suit is an error, and then all are closed.
func TakeSockets() (Sockets, error) {
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
				return s, fmt.Errorf("%w: socket %s (%s) from systemd is of kind %s; programs need ListenSequentialPacket= with a path, and metrics FileDescriptorName=%s",
					unix.EPROTOTYPE, l.Addr(), name, l.Addr().Network(), MetricsName)
			}
			u.SetUnlinkOnClose(false)
			s.Programs = append(s.Programs, u)
		}
	}
	return s, nil
}
