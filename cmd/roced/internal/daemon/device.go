// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// Device describes a device of the service. Limits are those of the user.
type Device struct {
	Name string // in the service's configuration
	Attr verbs.DeviceAttr
	Port verbs.PortAttr
	GIDs []verbs.GIDEntry
	Why  string // the reason why the device has no card and so no attributes; empty if it has a card
}

// QueryDevice returns the attributes of a device. It opens no session, so no limits apply.
func (c *Connection) QueryDevice(name string) (d Device, err error) {
	d.Name = name
	for {
		page, err := call(c, proto.LookDevice, proto.LookDeviceRequest{Device: name, From: uint32(len(d.GIDs))})
		if err != nil {
			return d, err
		}
		if !page.Open { // also if it was closed between two pages
			return Device{Name: name, Why: page.Why}, nil
		}
		d.Attr, d.Port, d.GIDs = page.Attr, page.Port, append(d.GIDs, page.GIDs...)
		if !page.More {
			return d, nil
		}
	}
}
