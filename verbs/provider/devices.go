// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"slices"

	"github.com/roced/roced/verbs/ib"
)

// FollowDevices reports the devices of list to a client, and again whenever changed returns nil, until one of the two
// fails. Then it reports the removal of all devices, as ib_unregister_client does. A device whose index or GUID has
// changed is a new device.
func FollowDevices(ctx context.Context, list func(context.Context) ([]ib.Device, error), changed func(context.Context) error, client ib.DeviceClient) error {
	var there []ib.Device
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
			list = func(context.Context) ([]ib.Device, error) { return nil, err }
		}
	}
}
