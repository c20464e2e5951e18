// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tcpListen is the state of a listening socket (TCP_LISTEN in net/tcp_states.h).
const tcpListen = 10

// Listens reports whether a TCP socket in the namespace listens on a port, on any address.
func (ns *Namespace) Listens(port uint16) (listens bool, err error) {
	err = ns.Do(func() error {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			sockets, err := netlink.SocketDiagTCP(family)
			if err != nil {
				return fmt.Errorf("sockets in %s: %w", ns.name, err)
			}
			for _, socket := range sockets {
				listens = listens || socket.State == tcpListen && socket.ID.SourcePort == port
			}
		}
		return nil
	})
	return listens, err
}
