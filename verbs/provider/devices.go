package provider

import (
	"context"
	"slices"
)

// Device is a device that can be opened (ibv_device).
type Device struct {
	Name  string // of the service's, what Dial takes; of the host's, the interface that hca.Open takes
	Index int    // the interface's, which no other has while the host runs (ibv_get_device_index); -1 on a network in memory
	GUID  uint64 // ibv_get_device_guid: of its MAC address; DeviceAttr.NodeGUID
}

// DeviceClient is told of devices (ib_client). Either function may be nil. They are called one after the other, by
// the goroutine that watches.
type DeviceClient struct {
	Add    func(Device) // it is there, or has come
	Remove func(Device) // it has gone, or its card has failed
}

// FollowDevices tells a client of the devices that list gives, and again whenever changed returns nil, until one of the
// two fails. Then it tells that all have gone, as ib_unregister_client does. A device whose index or GUID has changed
// is another.
func FollowDevices(ctx context.Context, list func(context.Context) ([]Device, error), changed func(context.Context) error, client DeviceClient) error {
	var there []Device
	for {
		now, err := list(ctx)
		if err != nil {
			now = nil
		}
		for _, d := range there {
			if !slices.Contains(now, d) && client.Remove != nil {
				client.Remove(d)
			}
		}
		for _, d := range now {
			if !slices.Contains(there, d) && client.Add != nil {
				client.Add(d)
			}
		}
		there = now
		if err != nil {
			return err
		}
		if err = changed(ctx); err != nil {
			list = func(context.Context) ([]Device, error) { return nil, err }
		}
	}
}
