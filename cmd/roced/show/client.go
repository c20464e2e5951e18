// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strconv"
	"time"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs/proto"
)

type clientRow struct {
	owner
	Since       time.Time `json:"since"`
	PDs         uint32    `json:"pd"`
	CQs         uint32    `json:"cq"`
	QPs         uint32    `json:"qp"`
	SRQs        uint32    `json:"srq"`
	MRs         uint32    `json:"mr"`
	AHs         uint32    `json:"ah"`
	Channels    uint32    `json:"comp_channel"`
	Memberships uint32    `json:"memberships"`
	Attachments uint32    `json:"attachments"`
	Memory      uint64    `json:"memory"` // bytes of queues and regions
}

func newClientRow(i *proto.ClientInfo) *clientRow {
	user := daemon.UserName(i.UID)
	if i.Owner != i.UID {
		user += " of " + daemon.UserName(i.Owner)
	}
	return &clientRow{
		owner{i.Device, i.Number, i.PID, i.Command, user}, time.Unix(0, int64(i.Since)),
		i.PDs, i.CQs, i.QPs, i.SRQs, i.MRs, i.AHs, i.Channels, i.Members, i.Attached, i.MemorySize,
	}
}

func (r *clientRow) cells() []string {
	device := r.Device
	if device == "" {
		device = "-"
	}
	return []string{
		number(r.Client), number(r.PID), r.Command, r.User, device, r.Since.Local().Format(time.DateTime), number(r.PDs), number(r.CQs), number(r.QPs),
		number(r.SRQs), number(r.MRs), number(r.AHs), number(r.Memberships), number(r.Attachments), size(r.Memory),
	}
}

func clientRows(c *daemon.Connection, o *listOptions) (rows []row, err error) {
	if _, err := c.Choose(o.Device); err != nil {
		return nil, err
	}
	clients, err := c.Clients(o.Device)
	for i := range clients {
		rows = append(rows, newClientRow(&clients[i]))
	}
	return rows, err
}

// size formats a number of bytes with a unit.
func size(bytes uint64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return number(bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for ; value >= 1024; unit++ {
		value /= 1024
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + units[unit:unit+1] + "iB"
}
