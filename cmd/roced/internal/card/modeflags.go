package card

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// ModeFlags say how packets get from the interface to the card, and back.
type ModeFlags struct {
	network        NetworkFlag
	xdp            modeFlag[hca.XDPMode]
	send           modeFlag[hca.SendMode]
	congestion     modeFlag[hca.Congestion]
	copy, zerocopy bool
}

// Add adds the flags to a command's.
func (m *ModeFlags) Add(f *pflag.FlagSet) {
	m.network.Add(f)
	m.xdp = modeFlag[hca.XDPMode]{list: []hca.XDPMode{hca.XDPAuto, hca.XDPNative, hca.XDPGeneric}}
	m.send = modeFlag[hca.SendMode]{list: []hca.SendMode{hca.SendAuto, hca.SendAFXDP, hca.SendTrains}}
	m.congestion = modeFlag[hca.Congestion]{list: []hca.Congestion{hca.CongestionAnswer, hca.CongestionMark, hca.CongestionOff}}
	f.Var(&m.congestion, "congestion", "`mode` of congestion control: answer (peers are notified of marked packets, and heeded), mark (besides, connections' packets say that switches may mark them) or off")
	f.Var(&m.xdp, "xdp", "`mode` of XDP: auto (native, else generic), native (in the driver) or generic (any interface, slower)")
	f.Var(&m.send, "tx", "`mode` of sending bursts: af_xdp (each packet by itself), trains (several in one frame, which the kernel or the NIC cuts; a receiver with generic XDP may lose them) or auto (trains on a veth pair with native XDP at the other end)")
	f.BoolVar(&m.copy, "copy", false, "AF_XDP sockets copy each frame; by themselves they do where the driver has no zero-copy")
	f.BoolVar(&m.zerocopy, "zerocopy", false, "AF_XDP sockets without copying, or an error")
}

// Check finds mistakes before anything is opened.
func (m *ModeFlags) Check() error {
	if m.OverUDP() {
		return m.checkUDP()
	}
	if m.copy && m.zerocopy {
		return errors.New("--copy and --zerocopy exclude each other: give one of them")
	}
	if m.zerocopy && m.xdp.chosen == hca.XDPGeneric {
		return errors.New("--zerocopy needs XDP in the driver: leave out --xdp generic")
	}
	if m.zerocopy && m.send.chosen == hca.SendTrains {
		return errors.New("--zerocopy does not work with trains: leave out --tx trains")
	}
	return nil
}

// checkUDP refuses what only XDP has.
func (m *ModeFlags) checkUDP() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--xdp " + string(m.xdp.chosen), m.xdp.isChosen()}, {"--tx " + string(m.send.chosen), m.send.isChosen()},
		{"--copy", m.copy}, {"--zerocopy", m.zerocopy},
	} {
		if f.given {
			return fmt.Errorf("--network udp and %s exclude each other: UDP sockets use no XDP; leave out one of them", f.name)
		}
	}
	return nil
}

// OverUDP says that UDP sockets are asked for.
func (m *ModeFlags) OverUDP() bool { return m.network.Network() == hca.NetworkUDP }

// NeedsXDP says that the flags ask for what only XDP has: then there is no other way.
func (m *ModeFlags) NeedsXDP() bool {
	return m.network.Network() == hca.NetworkXDP || m.xdp.isChosen() || m.send.isChosen() || m.copy || m.zerocopy
}

// Options are the device's.
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

// modeFlag is a mode by its name. The first of the list is the default.
type modeFlag[Mode ~string] struct {
	list   []Mode
	chosen Mode
}

func (m *modeFlag[Mode]) Set(text string) error {
	if m.chosen = Mode(text); !slices.Contains(m.list, m.chosen) {
		return fmt.Errorf("one of %s", strings.Trim(fmt.Sprint(m.list), "[]"))
	}
	return nil
}

// isChosen says that it is not left to the card.
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
