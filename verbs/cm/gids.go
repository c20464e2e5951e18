// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// ReadGIDs returns the GIDs of the id's own address and of its destination (the kernel's rdma_read_gids): on Ethernet
// these are the addresses; for a loopback address, the device address that represents it once it is resolved. Unknown
// GIDs are zero.
func (i *ID) ReadGIDs() (source, dest verbs.GID, err error) {
	if i == nil {
		return source, dest, fmt.Errorf("read GIDs: %w", errNil)
	}
	grant, err := i.query("read GIDs")
	if err != nil {
		return source, dest, err
	}
	source, dest = gidOf(grant.Local.Addr()), gidOf(grant.Remote.Addr())
	if looped := grant.Local.Addr().IsLoopback() || grant.Remote.Addr().IsLoopback(); looped {
		source, dest = grant.AH.GRH.DGID, grant.AH.GRH.DGID
	}
	return source, dest, nil
}

func gidOf(a netip.Addr) (gid verbs.GID) {
	if a.IsValid() && !a.IsUnspecified() {
		gid = verbs.GIDFromAddr(a)
	}
	return gid
}

// ServiceID returns the service id of a port in the id's port space (the kernel's rdma_get_service_id): the port space
// and the port.
func (i *ID) ServiceID(port uint16) uint64 { return uint64(i.PortSpace())<<16 | uint64(port) }

// Devices returns the channel's devices (rdma_get_devices), including those added later.
func (c *EventChannel) Devices() (list []*verbs.Context) {
	if c == nil {
		return nil
	}
	for _, d := range c.all() {
		list = append(list, d.ctx)
	}
	return list
}
