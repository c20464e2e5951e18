// SPDX-License-Identifier: Apache-2.0

package proto

import "github.com/roced/roced/verbs"

// LookDevice describes a device, without a session.
var LookDevice = command(9, "look_device", visitLookDevice, visitDeviceView)

// LookDeviceRequest requests the description of a device, with its GIDs from a position in their list on.
type LookDeviceRequest struct {
	Device string
	From   uint32
}

// DeviceView is the description of a device. The limits in Attr are those of the requesting user.
type DeviceView struct {
	Open bool   // it has a card; otherwise only Why is set
	More bool   // there are more GIDs than these, at most PageEntries
	Why  string // why there is no card, for users
	Attr verbs.DeviceAttr
	Port verbs.PortAttr
	GIDs []verbs.GIDEntry // of a device that makes a host for each client: those of all hosts
}

func visitLookDevice(c *coder, r *LookDeviceRequest) {
	c.text("device", nameLen, &r.Device)
	u32(c, "from", &r.From)
	c.reserved(4)
}

func visitDeviceView(c *coder, v *DeviceView) {
	c.flag("open", &v.Open)
	c.flag("more", &v.More)
	c.reserved(6)
	c.clipped("why", 256, &v.Why)
	part(c, "attr", "query_device_grant", &v.Attr, visitDevice)
	part(c, "port", "query_port_grant", &v.Port, visitPort)
	list(c, "gids", PageEntries, &v.GIDs, visitGID)
}
