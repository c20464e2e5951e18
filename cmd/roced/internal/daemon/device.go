package daemon

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// Device is what a device of the service is. Limits are those of the user.
type Device struct {
	Name string // in the service's configuration
	Attr verbs.DeviceAttr
	Port verbs.PortAttr
	GIDs []verbs.GIDEntry
	Why  string // it has no card now, and none of the above; empty if it has one
}

// Look asks what a device is. That takes no session: nothing is made, and no limit is met.
func (c *Connection) Look(name string) (d Device, err error) {
	d.Name = name
	for {
		page, err := ask(c, proto.LookDevice, proto.LookDeviceRequest{Device: name, From: uint32(len(d.GIDs))})
		if err != nil {
			return d, err
		}
		if !page.Open { // also if it has gone between two pages
			return Device{Name: name, Why: page.Why}, nil
		}
		d.Attr, d.Port, d.GIDs = page.Attr, page.Port, append(d.GIDs, page.GIDs...)
		if !page.More {
			return d, nil
		}
	}
}
