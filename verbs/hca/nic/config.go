// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/mcast/membership"
	"github.com/roced/roced/verbs"
)

// Config has the options of an interface, described at hca's options of the same names. The zero value of each field is
// its default.
type Config struct {
	Namespace  string // the file of a network namespace; empty for the caller's
	MTU        wire.MTU
	XDP        string // the names of modes
	Socket     string
	Send       string
	Membership string
	Workers    int // 0: one
	Frames     uint32
	Tuning     Tuning
	StateDir   string
	Log        *slog.Logger
}

// The modes that this package uses by name. The others are identified by their index in the list.
const (
	auto           = "auto"
	socketCopy     = "copy"
	socketZeroCopy = "zero-copy"
	sendAFXDP      = "af_xdp"
	sendTrains     = "trains"
)

// modes has a configuration's modes in the types of the packages below.
type modes struct {
	xdp        bpf.Mode
	socket     xsk.Mode
	membership membership.Method
}

// Check rejects unknown names of modes with verbs.ErrInvalid.
func (c *Config) Check() error {
	_, err := c.modes()
	return err
}

// modes translates the names.
func (c *Config) modes() (m modes, err error) {
	if m.xdp, err = find[bpf.Mode]("XDP mode", c.XDP, auto, "native", "generic"); err != nil {
		return m, err
	}
	if m.socket, err = find[xsk.Mode]("AF_XDP mode", c.Socket, auto, socketCopy, socketZeroCopy); err != nil {
		return m, err
	}
	if _, err = find[int]("send mode", c.Send, auto, sendAFXDP, sendTrains); err != nil {
		return m, err
	}
	m.membership, err = find[membership.Method]("membership method", c.Membership, auto, "netlink", "socket")
	return m, err
}

// find returns a name's index in the list of names; 0, the default, for an empty name.
func find[Number ~int](what, name string, names ...string) (Number, error) {
	if name == "" {
		return 0, nil
	}
	place := slices.Index(names, name)
	if place < 0 {
		return 0, fmt.Errorf("%w: %s %q; it must be one of %s", verbs.ErrInvalid, what, name, strings.Join(names, ", "))
	}
	return Number(place), nil
}
