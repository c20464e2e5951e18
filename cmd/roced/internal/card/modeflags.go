// SPDX-License-Identifier: Apache-2.0

package card

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// ModeFlags select how packets are exchanged with the interface.
type ModeFlags struct {
	network        NetworkFlag
	xdp            modeFlag[hca.XDPMode]
	send           modeFlag[hca.SendMode]
	congestion     modeFlag[hca.Congestion]
	copy, zerocopy bool
}

// Add adds the flags to a flag set.
func (m *ModeFlags) Add(f *pflag.FlagSet) {
	m.network.Add(f)
	m.xdp = modeFlag[hca.XDPMode]{list: []hca.XDPMode{hca.XDPAuto, hca.XDPNative, hca.XDPGeneric}}
	m.send = modeFlag[hca.SendMode]{list: []hca.SendMode{hca.SendAuto, hca.SendAFXDP, hca.SendTrains}}
	m.congestion = modeFlag[hca.Congestion]{list: []hca.Congestion{hca.CongestionAnswer, hca.CongestionMark, hca.CongestionOff}}
	f.Var(&m.congestion, "congestion", "`mode` of congestion control: answer (send CNPs for marked packets and react to CNPs), mark (also set ECT on packets of connections, so that switches can mark them) or off")
	f.Var(&m.xdp, "xdp", "XDP `mode`: auto (native, otherwise generic), native (in the driver) or generic (any interface, slower)")
	f.Var(&m.send, "tx", "`mode` of sending bursts: af_xdp (single packets), trains (several packets per frame, which the kernel or the NIC segments; a receiver with generic XDP may lose them) or auto (trains on a veth pair with native XDP at the other end)")
	f.BoolVar(&m.copy, "copy", false, "use AF_XDP sockets in copy mode (default: only if the driver does not support zero-copy)")
	f.BoolVar(&m.zerocopy, "zerocopy", false, "require AF_XDP sockets in zero-copy mode")
}

// Check validates the flags before anything is opened.
func (m *ModeFlags) Check() error {
	if m.OverUDP() {
		return m.checkUDP()
	}
	if m.copy && m.zerocopy {
		return errors.New("--copy and --zerocopy cannot be combined")
	}
	if m.zerocopy && m.xdp.chosen == hca.XDPGeneric {
		return errors.New("--zerocopy and --xdp generic cannot be combined: zero-copy needs native XDP")
	}
	if m.zerocopy && m.send.chosen == hca.SendTrains {
		return errors.New("--zerocopy and --tx trains cannot be combined")
	}
	return nil
}

// checkUDP rejects flags that apply to XDP only.
func (m *ModeFlags) checkUDP() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--xdp " + string(m.xdp.chosen), m.xdp.isChosen()}, {"--tx " + string(m.send.chosen), m.send.isChosen()},
		{"--copy", m.copy}, {"--zerocopy", m.zerocopy},
	} {
		if f.given {
			return fmt.Errorf("--network udp and %s cannot be combined: UDP sockets do not use XDP", f.name)
		}
	}
	return nil
}

// OverUDP reports whether UDP sockets were requested.
func (m *ModeFlags) OverUDP() bool { return m.network.Network() == hca.NetworkUDP }

// NeedsXDP reports whether the flags request features that only XDP has.
func (m *ModeFlags) NeedsXDP() bool {
	return m.network.Network() == hca.NetworkXDP || m.xdp.isChosen() || m.send.isChosen() || m.copy || m.zerocopy
}

// Options returns the options of the card.
func (m *ModeFlags) Options() []hca.Option {
	socket := hca.SocketAuto
	switch {
	case m.copy:
		socket = hca.SocketCopy
	case m.zerocopy:
		socket = hca.SocketZeroCopy
	}
	return []hca.Option{hca.WithNetwork(m.network.Network()), hca.WithXDPMode(m.xdp.chosen), hca.WithSendMode(m.send.chosen), hca.WithSocketMode(socket), hca.WithCongestion(m.congestion.chosen)}
}

// modeFlag is a flag for one of several modes. The first of the list is the default.
type modeFlag[Mode ~string] struct {
	list   []Mode
	chosen Mode
}

func (m *modeFlag[Mode]) Set(text string) error {
	if m.chosen = Mode(text); !slices.Contains(m.list, m.chosen) {
		return fmt.Errorf("must be one of %s", strings.Trim(fmt.Sprint(m.list), "[]"))
	}
	return nil
}

// isChosen reports whether a mode other than the default was given.
func (m *modeFlag[Mode]) isChosen() bool { return m.chosen != "" && m.chosen != m.list[0] }

func (m *modeFlag[Mode]) String() string {
	if m.chosen == "" && len(m.list) > 0 {
		return string(m.list[0])
	}
	return string(m.chosen)
}

// Choices implements cli.Choices.
func (m *modeFlag[Mode]) Choices() (list []string) {
	for _, mode := range m.list {
		list = append(list, string(mode))
	}
	return list
}

func (m *modeFlag[Mode]) Type() string { return "mode" }
