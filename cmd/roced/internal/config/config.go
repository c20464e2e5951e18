package config

import (
	"io/fs"
	"log/slog"
	"time"

	"github.com/roced/roced/verbs/hca"
)

// DefaultPath is the file that the service reads.
const DefaultPath = "/etc/roced/roced.toml"

// DefaultSocket is the socket that programs connect to unless the configuration names another.
const DefaultSocket = "/run/roced/roced.sock"

// Config is a service's configuration.
type Config struct {
	LogLevel slog.Level
	StateDir string
	Socket   Socket
	Access   Access
	Limits   Limits
	// ContainerLimits are those of the socket of a container; 0 is that of Limits.
	ContainerLimits Limits
	Metrics         Metrics
	// Namespaces are cards in the network namespaces of programs.
	Namespaces Namespaces
	Devices    []Device
}

// Socket is where programs connect, unless systemd passes a socket.
type Socket struct {
	Path  string
	Mode  fs.FileMode
	Group string // empty: the service's own
}

// Access says who may do what only some may.
type Access struct {
	PrivilegedGroup string // whose members may set privileged Q_Keys, as root may; empty: root alone
}

// Metrics says where metrics are served.
type Metrics struct {
	Listen string // "unix:PATH" or "HOST:PORT"; empty: nowhere
	Hosts  string // names by which requests over TCP may name the service, with commas between
}

// Namespaces says who gets a card in the network namespace that it is in.
type Namespaces struct {
	Device    string // by which programs ask for it; empty: nobody gets one
	Network   hca.Network
	Users     string // names or numbers, with commas; empty: any who may connect
	Folder    string // with names of the namespaces; empty: any namespace
	Cards     int    // at once
	UserCards int    // of one user, to whom the last eighth of all is not available
}

// Device is a card of an interface.
type Device struct {
	Interface  string
	Name       string // by which programs ask for it; empty: the interface's
	Network    hca.Network
	XDP        hca.XDPMode
	AFXDP      hca.SocketMode
	Send       hca.SendMode
	Membership hca.MembershipMethod
	RDMAMTU    int // bytes; 0: what the interface's allows
	Frames     int // a socket's rings; 0: what suits
	Workers    int
	Spin       time.Duration
	Congestion hca.Congestion
	DCQCN      DCQCN
	Recovery   hca.Recovery
	Tuning     hca.Tuning

	line int // of its [[device]], for mistakes
}

// DCQCN are the rates of congestion control, in Mbit/s. The other constants are the published ones.
type DCQCN struct{ LineRate, MinRate, AdditiveRise, HyperRise int }

// Mbit is a bit rate's unit here.
const Mbit = 1e6

// Default is the configuration that an empty file stands for.
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

// Parameters are the card's.
func (d DCQCN) Parameters() hca.DCQCN {
	p := hca.DefaultDCQCN()
	p.LineRate, p.MinRate = uint64(d.LineRate)*Mbit, uint64(d.MinRate)*Mbit
	p.AdditiveRise, p.HyperRise = uint64(d.AdditiveRise)*Mbit, uint64(d.HyperRise)*Mbit
	return p
}

// NewDevice is a device with defaults for all except its interface.
func NewDevice(name string) Device {
	return Device{
		Interface: name, Name: name, Workers: 1, Spin: 20 * time.Microsecond,
		Network: hca.NetworkAuto, XDP: hca.XDPAuto, AFXDP: hca.SocketAuto, Send: hca.SendAuto, Membership: hca.MembershipAuto,
		Congestion: hca.CongestionAnswer, DCQCN: defaultDCQCN(), Recovery: hca.RecoverySelective,
	}
}
