// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"testing"

	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var laterTests = []rig.Test{
	{Name: "ids: a device that comes later", Run: idLaterDevice},
}

// idLaterDevice checks AddDevice: ids without a device use the new device too, and ids with a device keep it.
func idLaterDevice(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := a.service() // on A only
	idle, settled := a.id(cm.PortSpaceUDP), a.id(cm.PortSpaceUDP)
	rig.Check(t, settled.Bind(port(w.A.End.IPv4, 0)))
	rig.Check(t, a.channel.AddDevice(w.B.Ctx))
	rig.Refused(t, a.channel.AddDevice(w.B.Ctx), unix.EINVAL, "already has this device")
	rig.Refused(t, a.channel.AddDevice(nil), unix.EINVAL)

	client := b.connect(port(w.B.End.IPv4, at), "to the one that came later")
	request := a.request(service)
	if device, err := request.ID.Device(); err != nil || device != w.B.Ctx {
		t.Errorf("the request's device is not the added one: %v", err)
	}
	rig.Check(t, request.ID.Reject(nil))
	b.event(client, cm.EventUnreachable)
	rig.Check(t, idle.Bind(port(w.B.End.IPv4, 0)))
	if device, err := settled.Device(); err != nil || device != w.A.Ctx {
		t.Errorf("a bound id has changed its device: %v", err)
	}
	if settled.Channel() != a.channel {
		t.Error("the id has a different channel")
	}
}
