package card

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/pflag"
)

// ModeFlags say how packets get from the interface to the card, and back.
type ModeFlags struct {
	xdp            xdpFlag
	copy, zerocopy bool
}

// Add adds the flags to a command's.
func (m *ModeFlags) Add(f *pflag.FlagSet) {
	f.Var(&m.xdp, "xdp", "`mode` of XDP: auto (native, else generic), native (in the driver) or generic (any interface, slower)")
	f.BoolVar(&m.copy, "copy", false, "AF_XDP sockets copy each frame; by themselves they do where the driver has no zero-copy")
	f.BoolVar(&m.zerocopy, "zerocopy", false, "AF_XDP sockets without copying, or an error")
}

// Check finds mistakes before anything is opened.
func (m *ModeFlags) Check() error {
	if m.copy && m.zerocopy {
		return errors.New("--copy and --zerocopy exclude each other: give one of them")
	}
	if m.zerocopy && m.xdp.XDPMode == hca.XDPGeneric {
		return errors.New("--zerocopy needs XDP in the driver: leave out --xdp generic")
	}
	return nil
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
	return []hca.Option{hca.WithXDPMode(m.xdp.XDPMode), hca.WithSocketMode(socket)}
}

// xdpFlag is a mode of XDP by its name.
type xdpFlag struct{ hca.XDPMode }

func (x *xdpFlag) Set(text string) error {
	modes := []hca.XDPMode{hca.XDPAuto, hca.XDPNative, hca.XDPGeneric}
	if x.XDPMode = hca.XDPMode(text); !slices.Contains(modes, x.XDPMode) {
		return fmt.Errorf("auto, native or generic")
	}
	return nil
}

func (x *xdpFlag) String() string { return string(cmp.Or(x.XDPMode, hca.XDPAuto)) }

func (x *xdpFlag) Type() string { return "mode" }
