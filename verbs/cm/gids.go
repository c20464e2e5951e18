package cm

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// ReadGIDs gives the GIDs of the id's own address and of its destination (the kernel's rdma_read_gids): on Ethernet,
// the addresses themselves, or, of a loopback address, that of the device's which stands for it once it is
// resolved. One that there is none of yet is zero.
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

// ServiceID is what a port of the id's port space is called in requests (the kernel's rdma_get_service_id): the port
// space, and the port.
func (i *ID) ServiceID(port uint16) uint64 { return uint64(i.PortSpace())<<16 | uint64(port) }

// Devices are those that the channel's ids may be on (rdma_get_devices): those that it was made for, and those that
// have come since.
func (c *EventChannel) Devices() (list []*verbs.Context) {
	if c == nil {
		return nil
	}
	for _, d := range c.all() {
		list = append(list, d.ctx)
	}
	return list
}
