// SPDX-License-Identifier: Apache-2.0

package device

import (
	"fmt"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
)

// State is the state of a device, for status lines and metrics.
type State struct {
	Open   bool
	Active bool   // of the port
	Text   string // "roce0 active, 10.77.0.1, RDMA MTU 1024, XDP native, AF_XDP copy"
}

// State returns the current state.
func (d *Device) State() State {
	card, why := d.now()
	if card == nil {
		return State{Text: d.config.Name + ": " + firstLine(why)}
	}
	port, err := provider.Do(card, provider.QueryPort, provider.QueryPortRequest{Port: 1})
	return State{Open: err == nil, Active: err == nil && port.State == verbs.PortActive, Text: d.config.Name + " " + describe(card)}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// describe returns the state of a card as text.
func describe(card *hca.Card) string {
	port, err := provider.Do(card, provider.QueryPort, provider.QueryPortRequest{Port: 1})
	if err != nil {
		return firstLine(err)
	}
	attr, err := provider.Do(card, provider.QueryDevice, provider.None{})
	if err != nil {
		return firstLine(err)
	}
	state := "down"
	if port.State == verbs.PortActive {
		state = "active"
	}
	text := fmt.Sprintf("%s, %s, RDMA MTU %d, %s", state, address(card), port.ActiveMTU.Bytes(), cli.Way(attr.XDPMode, attr.AFXDPMode))
	if attr.Workers > 1 {
		text += fmt.Sprintf(", %d workers", attr.Workers)
	}
	return text
}

// address returns the address of the default GID.
func address(card *hca.Card) string {
	grant, err := provider.Do(card, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: 1})
	if err != nil || len(grant.Entries) == 0 {
		return "no address"
	}
	return grant.Entries[0].GID.Addr().Unmap().String()
}
