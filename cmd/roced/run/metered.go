// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/cmd/roced/run/device"
	"github.com/roced/roced/cmd/roced/run/metrics"
	"github.com/roced/roced/cmd/roced/run/namespaces"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// wireDevice adapts a device of the in-memory network for metrics. It is always open.
type wireDevice struct{ loopback.Device }

// State implements metrics.Device.
func (d wireDevice) State() device.State {
	port, err := provider.Do(d, provider.QueryPort, provider.QueryPortRequest{Port: 1})
	return device.State{Open: err == nil, Active: err == nil && port.State == verbs.PortActive, Text: d.Name()}
}

// Opens implements metrics.Device.
func (d wireDevice) Opens() uint64 { return 1 }

// namespacesDevice adapts the cards in other network namespaces for metrics. It is open while at least one card is
// open.
type namespacesDevice struct{ *namespaces.Device }

// State implements metrics.Device.
func (d namespacesDevice) State() (state device.State) {
	cards := d.Cards()
	state.Open, state.Text = len(cards) > 0, d.Name()
	for _, card := range cards {
		port, err := provider.Do(card, provider.QueryPort, provider.QueryPortRequest{Port: 1})
		state.Active = state.Active || err == nil && port.State == verbs.PortActive
	}
	return state
}

// metered returns the devices that metrics report on.
func (s *service) metered() (list []metrics.Device) {
	for _, d := range s.devices.list() {
		list = append(list, d)
	}
	if s.network != nil {
		for _, d := range s.network.Devices() {
			list = append(list, wireDevice{d})
		}
	}
	if s.elsewhere != nil {
		list = append(list, namespacesDevice{s.elsewhere})
	}
	return list
}
