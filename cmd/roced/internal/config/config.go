// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"log/slog"
	"time"

	"github.com/roced/roced/verbs/hca"
)

// DefaultPath is the default configuration file of the service.
const DefaultPath = "/etc/roced/roced.toml"

// DefaultSocket is the default socket for programs.
const DefaultSocket = "/run/roced/roced.sock"

// Config is the configuration of a service.
type Config struct {
	LogLevel slog.Level
	StateDir string
	Socket   Socket
	Access   Access
	Limits   Limits
	// ContainerLimits apply to the socket of a container; 0 means the value of Limits.
	ContainerLimits Limits
	Metrics         Metrics
	// Namespaces configures cards in the network namespaces of programs.
	Namespaces Namespaces
	Devices    []Device
}

// Socket is the socket for programs, unless systemd passes one.
type Socket struct {
	Path  string
	Mode  fs.FileMode
	Group string // empty: that of the service
}

// Access configures access to privileged operations.
type Access struct {
	PrivilegedGroup string // members can set privileged Q_Keys, like root; empty: only root
}

// Metrics configures the metrics server.
type Metrics struct {
	Listen string // "unix:PATH" or "HOST:PORT"; empty: disabled
	Hosts  string // host names allowed in requests over TCP, separated by commas
}

// Namespaces configures cards in the network namespaces of programs.
type Namespaces struct {
	Device    string // device name that programs use; empty: disabled
	Network   hca.Network
	Users     string // names or numbers, separated by commas; empty: all users that can connect
	Folder    string // directory of the namespaces' names; empty: any namespace
	Cards     int    // maximum number of open cards
	UserCards int    // per user; the last eighth of Cards is reserved for users without a card
}

// Device is a card on an interface.
type Device struct {
	Interface  string
	Name       string // device name that programs use; empty: that of the interface
	Network    hca.Network
	XDP        hca.XDPMode
	AFXDP      hca.SocketMode
	Send       hca.SendMode
	Membership hca.MembershipMethod
	RDMAMTU    int // bytes; 0: that of the interface
	Frames     int // per ring; 0: automatic
	Workers    int
	Spin       time.Duration
	Congestion hca.Congestion
	DCQCN      DCQCN
	Recovery   hca.Recovery
	Tuning     hca.Tuning

	line int // of its [[device]], for errors
}

// DCQCN holds rates of congestion control in Mbit/s. The other constants are those of the publication.
type DCQCN struct{ LineRate, MinRate, AdditiveRise, HyperRise int }

// Mbit is the unit of rates.
const Mbit = 1e6

// Default returns the configuration of an empty file.
func Default() *Config {
	return &Config{
		LogLevel:   slog.LevelInfo,
		StateDir:   "/run/roced",
		Socket:     Socket{Path: DefaultSocket, Mode: 0o660},
		Namespaces: Namespaces{Network: hca.NetworkAuto, Cards: 64, UserCards: 64},
		Limits: Limits{
			Clients: 256, PDs: 1024, MRs: 8192, CQs: 4096, QPs: 4096, AHs: 16384, SRQs: 1024, XRCDs: 256, Channels: 1024,
			Memberships: 1024, Attachments: 4096, IDs: 4096, EventChannels: 1024, Memory: 1 << 30,
		},
	}
}

func defaultDCQCN() DCQCN {
	p := hca.DefaultDCQCN()
	return DCQCN{int(p.LineRate / Mbit), int(p.MinRate / Mbit), int(p.AdditiveRise / Mbit), int(p.HyperRise / Mbit)}
}

// Parameters converts the configuration for a card.
func (d DCQCN) Parameters() hca.DCQCN {
	p := hca.DefaultDCQCN()
	p.LineRate, p.MinRate = uint64(d.LineRate)*Mbit, uint64(d.MinRate)*Mbit
	p.AdditiveRise, p.HyperRise = uint64(d.AdditiveRise)*Mbit, uint64(d.HyperRise)*Mbit
	return p
}

// NewDevice returns a device with defaults for all keys except the interface.
func NewDevice(name string) Device {
	return Device{
		Interface: name, Name: name, Workers: 1, Spin: 20 * time.Microsecond,
		Network: hca.NetworkAuto, XDP: hca.XDPAuto, AFXDP: hca.SocketAuto, Send: hca.SendAuto, Membership: hca.MembershipAuto,
		Congestion: hca.CongestionAnswer, DCQCN: defaultDCQCN(), Recovery: hca.RecoverySelective,
	}
}
