// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs"
)

// noCard is the state of a device without a card.
const noCard = "NO CARD"

type deviceRow struct {
	Name     string `json:"ifname"`
	Netdev   string `json:"netdev"`
	GUID     string `json:"node_guid"` // empty if it differs per program
	Firmware string `json:"fw"`
	State    string `json:"state"`
	Network  string `json:"network"`
	XDP      string `json:"xdp"`
	AFXDP    string `json:"af_xdp"`
	Send     string `json:"send"`
	NoTrains string `json:"no_trains,omitempty"` // reason why packet trains are not used
	Workers  int    `json:"workers,omitempty"`   // 0: unknown
	MaxQP    int    `json:"max_qp"`              // limit of the calling user, like the next
	MaxMR    int    `json:"max_mr"`
	Why      string `json:"error,omitempty"` // why there is no card
}

func newDeviceRow(d *daemon.Device) row {
	r := &deviceRow{Name: d.Name, State: noCard}
	if r.Why = d.Why; d.Why != "" {
		return r
	}
	a := &d.Attr
	r.Netdev, r.GUID, r.Firmware, r.State = a.Name, guid(a.NodeGUID), a.FirmwareVersion, stateOf(d.Port.State)
	r.Network, r.XDP, r.AFXDP = cli.Network(a.XDPMode, a.AFXDPMode), a.XDPMode, a.AFXDPMode
	r.Send, r.NoTrains, r.Workers, r.MaxQP, r.MaxMR = a.SendMode, a.SendReason, int(a.Workers), a.MaxQP, a.MaxMR
	return r
}

func (r *deviceRow) cells() []string {
	if r.Why != "" {
		return []string{r.Name, "-", "-", r.State, "-", "-", "-", "-", "-", r.Why}
	}
	var remarks []string
	if r.Workers > 1 {
		remarks = append(remarks, fmt.Sprintf("%d workers", r.Workers))
	}
	if r.NoTrains != "" {
		remarks = append(remarks, "no packet trains: "+r.NoTrains)
	}
	return []string{r.Name, r.Netdev, orDash(r.GUID), r.State, r.Network, orNone(r.XDP), orNone(r.AFXDP), orNone(r.Send), r.Firmware, strings.Join(remarks, "; ")}
}

type portRow struct {
	Link     string `json:"ifname"`
	Port     int    `json:"port"`
	State    string `json:"state"`
	Physical string `json:"physical_state"`
	Netdev   string `json:"netdev"`
	MTU      int    `json:"active_mtu"` // RDMA MTU, bytes
	LinkMTU  int    `json:"netdev_mtu"`
	Speed    int    `json:"speed"` // Mbit/s of the interface, 0 if it has none
	QKeys    uint64 `json:"qkey_violations"`
	PKeys    uint64 `json:"pkey_violations"`
	Why      string `json:"error,omitempty"` // why there is no card
}

func newPortRow(d *daemon.Device) row {
	r := &portRow{Link: d.Name, Port: 1, State: noCard}
	if r.Why = d.Why; d.Why != "" {
		return r
	}
	p := &d.Port
	r.State, r.Physical, r.Netdev = stateOf(p.State), strings.TrimPrefix(p.PhysState.String(), "PHYS_"), d.Attr.Name
	r.MTU, r.LinkMTU, r.Speed, r.QKeys, r.PKeys = p.ActiveMTU.Bytes(), p.InterfaceMTU, p.InterfaceSpeed, p.QKeyViolations, p.PKeyViolations
	return r
}

func (r *portRow) cells() []string {
	link := fmt.Sprintf("%s/%d", r.Link, r.Port)
	if r.Why != "" {
		return []string{link, r.State, "-", "-", "-", "-", "-", r.Why}
	}
	speed := "-"
	if r.Speed > 0 {
		speed = strconv.Itoa(r.Speed) + "Mb/s"
	}
	return []string{link, r.State, r.Physical, r.Netdev, strconv.Itoa(r.MTU), strconv.Itoa(r.LinkMTU), speed, ""}
}

func stateOf(s verbs.PortState) string { return strings.ToUpper(s.String()) }

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// guid formats a GUID as rdma(8) does; empty for 0.
func guid(g uint64) string {
	if g == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
}

// devices returns the function that lists devices.
func devices(line func(*daemon.Device) row) func(*daemon.Connection, *listOptions) ([]row, error) {
	return func(c *daemon.Connection, o *listOptions) (rows []row, err error) {
		names, err := c.Choose(o.Device)
		for _, name := range names {
			d, err := c.QueryDevice(name)
			if err != nil {
				return nil, err
			}
			rows = append(rows, line(&d))
		}
		return rows, err
	}
}
