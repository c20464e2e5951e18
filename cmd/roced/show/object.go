// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// owner identifies the client that owns an object. JSON names are those of rdma(8) where it has them, as in
// the whole package.
type owner struct {
	Device  string `json:"ifname"`
	Client  uint64 `json:"client"`
	PID     uint32 `json:"pid"`
	Command string `json:"comm"`
	User    string `json:"user"`
}

// ownerHeader holds the columns of an owner, except the device.
var ownerHeader = []string{"CLIENT", "PID", "COMM", "USER"}

func headerOf(own ...string) []string { return append(append([]string{"DEV"}, own...), ownerHeader...) }

func (o *owner) around(own ...string) []string {
	return append(append([]string{o.Device}, own...), number(o.Client), number(o.PID), o.Command, o.User)
}

// number formats a number for a column.
func number[N ~uint8 | ~uint16 | ~uint32 | ~uint64](n N) string {
	return strconv.FormatUint(uint64(n), 10)
}

// level formats the fill level of a queue.
func level(used, size uint32) string { return number(used) + "/" + number(size) }

// objects returns the function that lists objects of some kinds.
func objects(line func(owner, *proto.ClientObject, proto.ObjectKind) row, kinds ...proto.ObjectKind) func(*daemon.Connection, *listOptions) ([]row, error) {
	return func(c *daemon.Connection, o *listOptions) (rows []row, err error) {
		if _, err := c.Choose(o.Device); err != nil {
			return nil, err
		}
		owners, err := ownersOf(c, o.Device)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			list, err := c.Objects(kind)
			if err != nil {
				return nil, err
			}
			for i := range list {
				if whose, known := owners[list[i].Client]; known { // unknown: a new client, or one of another device
					rows = append(rows, line(whose, &list[i], kind))
				}
			}
		}
		return rows, nil
	}
}

// ownersOf returns the clients of a device, or of all devices, by number.
func ownersOf(c *daemon.Connection, device string) (map[uint64]owner, error) {
	clients, err := c.Clients(device)
	if err != nil {
		return nil, err
	}
	owners := map[uint64]owner{}
	for _, one := range clients {
		owners[one.Number] = owner{one.Device, one.Number, one.PID, one.Command, daemon.UserName(one.UID)}
	}
	return owners, nil
}

type pdRow struct {
	owner
	PD    provider.Handle `json:"pdn"`
	Users uint32          `json:"users"`
}

func newPDRow(o owner, p *proto.ClientObject, _ proto.ObjectKind) row {
	return &pdRow{o, p.Handle, p.Users}
}

func (r *pdRow) cells() []string { return r.around(number(r.PD), number(r.Users)) }

type cqRow struct {
	owner
	CQ      provider.Handle `json:"cqn"`
	Entries uint32          `json:"cqe"`
	Unread  uint32          `json:"unread"`
	Users   uint32          `json:"users"`
	State   string          `json:"state"` // OK or OVERRUN
}

func newCQRow(o owner, p *proto.ClientObject, _ proto.ObjectKind) row {
	state := "OK"
	if p.Failed {
		state = "OVERRUN"
	}
	return &cqRow{o, p.Handle, p.Size, p.Used, p.Users, state}
}

func (r *cqRow) cells() []string {
	return r.around(number(r.CQ), level(r.Unread, r.Entries), number(r.Users), r.State)
}

type qpRow struct {
	owner
	QPN      uint32          `json:"lqpn"`
	Type     string          `json:"type"`
	State    string          `json:"state"`
	PSN      verbs.PSN       `json:"sq-psn"`
	PeerQPN  verbs.QPN       `json:"rqpn,omitempty"` // of a connected queue pair, like the next
	Peer     string          `json:"dgid,omitempty"`
	QKey     string          `json:"qkey"`
	PD       provider.Handle `json:"pdn"`
	SendCQ   provider.Handle `json:"scqn"`
	RecvCQ   provider.Handle `json:"rcqn"`
	SRQ      provider.Handle `json:"srqn,omitempty"`
	Sends    uint32          `json:"sends"` // pending
	MaxSends uint32          `json:"max_send_wr"`
	Recvs    uint32          `json:"recvs"` // posted
	MaxRecvs uint32          `json:"max_recv_wr"`
	Groups   uint32          `json:"groups"` // attached groups
}

func newQPRow(o owner, q *proto.ClientObject, _ proto.ObjectKind) row {
	peer := ""
	if q.PeerQPN != 0 {
		peer = q.Dest.String()
	}
	return &qpRow{
		o, q.Number, q.Type.String(), q.State.String(), q.PSN, q.PeerQPN, peer, fmt.Sprintf("0x%08x", uint32(q.QKey)), q.PD, q.SendCQ, q.RecvCQ, q.SRQ,
		q.Used, q.Size, q.RecvUsed, q.RecvSize, q.Users,
	}
}

func (r *qpRow) cells() []string {
	recvs := level(r.Recvs, r.MaxRecvs)
	if r.SRQ != 0 {
		recvs = "srq " + number(r.SRQ)
	}
	peer := "-"
	if r.PeerQPN != 0 {
		peer = fmt.Sprintf("0x%06x", uint32(r.PeerQPN))
	}
	return r.around(fmt.Sprintf("0x%06x", r.QPN), r.Type, r.State, r.QKey, level(r.Sends, r.MaxSends), recvs, number(r.Groups), number(r.PD),
		number(r.SendCQ), number(r.RecvCQ), peer, orDash(r.Peer))
}

type srqRow struct {
	owner
	SRQ   provider.Handle `json:"srqn"`
	PD    provider.Handle `json:"pdn"`
	Recvs uint32          `json:"recvs"`
	MaxWR uint32          `json:"max_wr"`
	Limit uint32          `json:"limit"` // 0: not armed
	Users uint32          `json:"users"`
}

func newSRQRow(o owner, q *proto.ClientObject, _ proto.ObjectKind) row {
	return &srqRow{o, q.Handle, q.PD, q.Used, q.Size, q.Limit, q.Users}
}

func (r *srqRow) cells() []string {
	return r.around(number(r.SRQ), level(r.Recvs, r.MaxWR), number(r.Limit), number(r.Users), number(r.PD))
}

type mrRow struct {
	owner
	MR     provider.Handle `json:"mrn"`
	LKey   string          `json:"lkey"`
	Length uint64          `json:"mrlen"`
	IOVA   string          `json:"iova"`
	Access string          `json:"access"`
	PD     provider.Handle `json:"pdn"`
}

func newMRRow(o owner, m *proto.ClientObject, _ proto.ObjectKind) row {
	access := "read"
	if m.Access&verbs.AccessLocalWrite != 0 {
		access = "write"
	}
	for _, remote := range []struct {
		flag verbs.AccessFlags
		name string
	}{{verbs.AccessRemoteRead, "remote-read"}, {verbs.AccessRemoteWrite, "remote-write"}, {verbs.AccessRemoteAtomic, "remote-atomic"}, {verbs.AccessMWBind, "mw-bind"}} {
		if m.Access&remote.flag != 0 {
			access += "," + remote.name
		}
	}
	return &mrRow{o, m.Handle, fmt.Sprintf("0x%08x", m.Number), m.Length, fmt.Sprintf("0x%x", m.Address), access, m.PD}
}

func (r *mrRow) cells() []string {
	return r.around(number(r.MR), r.LKey, number(r.Length), r.IOVA, r.Access, number(r.PD))
}

type ahRow struct {
	owner
	AH     provider.Handle `json:"ahn"`
	PD     provider.Handle `json:"pdn"`
	Source string          `json:"sgid"`
	Dest   string          `json:"dgid"`
	State  string          `json:"state"` // OK or UNREACHABLE
}

func newAHRow(o owner, a *proto.ClientObject, _ proto.ObjectKind) row {
	state := "OK"
	if a.Failed {
		state = "UNREACHABLE"
	}
	return &ahRow{o, a.Handle, a.PD, a.Source.String(), a.Dest.String(), state}
}

func (r *ahRow) cells() []string {
	return r.around(number(r.AH), r.Source, r.Dest, r.State, number(r.PD))
}

type mcastRow struct {
	owner
	Group string     `json:"mgid"`
	Role  string     `json:"role"` // attached, member or send-only
	QPN   uint32     `json:"lqpn,omitempty"`
	MLID  verbs.MLID `json:"mlid"`
}

func newMcastRow(o owner, m *proto.ClientObject, kind proto.ObjectKind) row {
	role := "attached"
	switch {
	case kind == proto.Memberships && m.Full:
		role = "member"
	case kind == proto.Memberships:
		role = "send-only"
	}
	return &mcastRow{o, m.Dest.String(), role, m.Number, m.MLID}
}

func (r *mcastRow) cells() []string {
	qpn := "-"
	if r.QPN != 0 {
		qpn = fmt.Sprintf("0x%06x", r.QPN)
	}
	return r.around(r.Group, r.Role, qpn, fmt.Sprintf("0x%04x", uint16(r.MLID)))
}
