// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs/proto"
)

// event is the output for an event. JSON names are those of roced show.
type event struct {
	Time    time.Time `json:"time,omitzero"`
	Device  string    `json:"ifname,omitempty"`
	What    string    `json:"event"`            // client_opened, client_closed, device, device_opened, object, qp_state, lost
	Name    string    `json:"name,omitempty"`   // type of a device or object event; state of a QP
	Object  string    `json:"object,omitempty"` // cq, qp, srq
	Number  uint32    `json:"number,omitempty"` // lqpn, cqn, srqn
	Client  uint64    `json:"client,omitempty"`
	PID     uint32    `json:"pid,omitempty"`
	Command string    `json:"comm,omitempty"`
	User    string    `json:"user,omitempty"`
	Lost    uint64    `json:"lost,omitempty"`
}

// kinds maps kinds of events to their names.
var kinds = map[proto.EventKind]string{
	proto.ClientOpened: "client_opened", proto.ClientClosed: "client_closed", proto.DeviceEvent: "device", proto.ObjectEvent: "object", proto.QPFailed: "qp_state",
	proto.DeviceOpened: "device_opened",
}

var objects = map[proto.ObjectKind]string{proto.CQs: "cq", proto.QPs: "qp", proto.SRQs: "srq"}

func newEvent(p *proto.Event) *event {
	e := &event{
		Time: time.Unix(0, int64(p.Time)), Device: p.Device, What: kinds[p.Kind], Object: objects[p.Object], Number: p.Number,
		Client: p.Client, PID: p.PID, Command: p.Command,
	}
	if p.Client != 0 {
		e.User = daemon.UserName(p.UID)
	}
	switch p.Kind {
	case proto.DeviceEvent, proto.ObjectEvent:
		e.Name = p.Type.String()
	case proto.QPFailed:
		e.Name = p.State.String()
	}
	return e
}

// String returns the event as a line of text.
func (e *event) String() string {
	if e.Lost > 0 {
		return fmt.Sprintf("%s lost: events occurred faster than they were read", cli.Several(e.Lost, "event"))
	}
	whose := fmt.Sprintf("client %d (%s, pid %d, %s)", e.Client, e.Command, e.PID, e.User)
	text := ""
	switch e.What {
	case "client_opened":
		text = whose + " opened the device"
	case "client_closed":
		text = whose + " closed the device"
	case "device":
		text = e.Name
	case "device_opened":
		text = "opened: programs can use it"
	case "object":
		text = fmt.Sprintf("%s of %s: %s", e.object(), whose, e.Name)
	case "qp_state":
		text = fmt.Sprintf("%s of %s: state %s", e.object(), whose, e.Name)
	}
	return fmt.Sprintf("%s  %s  %s", e.Time.Local().Format("2006-01-02 15:04:05.000000"), e.Device, text)
}

func (e *event) object() string {
	if e.Object == "qp" {
		return fmt.Sprintf("QP 0x%06x", e.Number)
	}
	return fmt.Sprintf("%s %d", map[string]string{"cq": "CQ", "srq": "SRQ"}[e.Object], e.Number)
}
