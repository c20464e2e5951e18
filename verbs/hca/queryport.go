//go:build linux

package hca

import (
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// QueryPort implements provider.Provider.
func (s *Session) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	if err := checkPort(r.Port); err != nil {
		return verbs.PortAttr{}, err
	}
	if err := s.enter(); err != nil {
		return verbs.PortAttr{}, err
	}
	card := s.card
	defer card.mu.Unlock()
	drops := card.engine.Counters().Drops
	attr := verbs.PortAttr{
		State: verbs.PortDown, MaxMTU: card.largestMTU(), ActiveMTU: card.activeMTU, GIDTableLen: len(card.gids.lines), PKeyTableLen: 1,
		MaxMsgSize: datapath.MaxMessage, QKeyViolations: drops[datapath.DropQKey], InterfaceMTU: card.status.MTU,
		PhysState: physState(&card.status), LinkLayer: verbs.LinkLayerEthernet, CapFlags: verbs.PortCapIPBasedGIDs, MaxVLNum: 1,
		PKeyViolations: drops[datapath.DropPKey], InterfaceSpeed: card.status.Speed,
	}
	if card.status.Up {
		attr.State = verbs.PortActive
	}
	attr.ActiveWidth, attr.ActiveSpeed = widthAndSpeed(card.status.Speed)
	return attr, nil
}

func physState(status *network.Port) verbs.PortPhysState {
	switch {
	case status.Up:
		return verbs.PhysStateLinkUp
	case status.Enabled:
		return verbs.PhysStatePolling
	}
	return verbs.PhysStateDisabled
}

// The numbers of widths and speeds (IBA 14.2.5.6).
const (
	width1x, width4x, width2x     = 1, 2, 16
	speed2G5, speed5G, speed10G   = 1, 2, 8 // the last is FDR-10
	speed25G, speed50G, speed100G = 32, 64, 128
)

// ethernetLinks are the links by which the kernel describes an Ethernet interface: the first that is
// fast enough (ib_get_eth_speed).
var ethernetLinks = []struct {
	mbps         int // at most
	width, speed uint8
}{
	{1000, width1x, speed2G5}, {10000, width1x, speed10G}, {20000, width4x, speed5G}, {25000, width1x, speed25G},
	{40000, width4x, speed10G}, {50000, width2x, speed25G}, {100000, width4x, speed25G}, {200000, width4x, speed50G},
}

func widthAndSpeed(mbps int) (width, speed uint8) {
	for _, link := range ethernetLinks {
		if mbps <= link.mbps {
			return link.width, link.speed
		}
	}
	return width4x, speed100G
}
