//go:build linux

package hca

import (
	"context"
	"fmt"
	"net"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// ListDevices lists the interfaces of the calling thread's network namespace that Open may be given: those with an
// Ethernet address (ibv_get_device_list). Whether one can be opened shows only when it is.
func ListDevices() ([]verbs.Device, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, network.HostError(fmt.Errorf("list interfaces: %w", err))
	}
	var list []verbs.Device
	for _, i := range all {
		if len(i.HardwareAddr) == len(wire.MAC{}) && i.Flags&net.FlagLoopback == 0 {
			list = append(list, verbs.Device{Name: i.Name, Index: i.Index, GUID: guid(wire.MAC(i.HardwareAddr))})
		}
	}
	return list, nil
}

// WatchDevices tells a client of the interfaces that ListDevices lists, and of those that come and go
// (ib_register_client), until ctx is done: its cause is the error. Before it returns it calls Remove for those that
// are there, as ib_unregister_client does. An interface that is renamed, or gets another address, goes and comes.
func WatchDevices(ctx context.Context, client verbs.DeviceClient) error {
	links, err := host.WatchLinks()
	if err != nil {
		return network.HostError(fmt.Errorf("watch devices: %w", err))
	}
	defer links.Close()
	defer context.AfterFunc(ctx, links.Close)()
	err = provider.FollowDevices(ctx, func(context.Context) ([]verbs.Device, error) { return ListDevices() },
		func(context.Context) error { return links.Changed() }, client)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("watch devices: %w", err)
}
