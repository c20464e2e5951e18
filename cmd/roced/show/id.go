// SPDX-License-Identifier: Apache-2.0

package show

import (
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

type idRow struct {
	owner
	ID        provider.Handle `json:"cm-idn"`
	PortSpace string          `json:"ps"`
	Type      string          `json:"qp-type"`
	State     string          `json:"state"`
	Source    string          `json:"src-addr,omitempty"`
	Dest      string          `json:"dst-addr,omitempty"`
	Events    uint32          `json:"events"`
	Groups    uint32          `json:"groups"`
}

// idRows returns the connection ids.
func idRows(c *daemon.Connection, o *listOptions) (rows []row, err error) {
	if _, err := c.Choose(o.Device); err != nil {
		return nil, err
	}
	owners, err := ownersOf(c, o.Device)
	if err != nil {
		return nil, err
	}
	list, err := c.IDs()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if whose, known := owners[list[i].Client]; known { // unknown: a new client, or one of another device
			rows = append(rows, newIDRow(whose, &list[i]))
		}
	}
	return rows, nil
}

func newIDRow(o owner, i *proto.ClientID) row {
	return &idRow{o, i.Handle, i.PortSpace.String(), i.Type.String(), i.State, addressText(i.Local), addressText(i.Remote), i.Events, i.Groups}
}

// addressText formats an address; empty if invalid.
func addressText(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func (r *idRow) cells() []string {
	return r.around(number(r.ID), r.PortSpace, r.Type, r.State, orDash(r.Source), orDash(r.Dest), number(r.Events), number(r.Groups))
}
