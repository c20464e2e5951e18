// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/roced/roced/verbs/hca"
)

// key is a key of the configuration file.
type key struct {
	name string // including tables; keys of [[device]] start with "device."
	want string // description of valid values
	set  func(c *Config, value any) bool
}

// Limits of values.
const (
	maxObjects  = 1 << 20
	maxCards    = 4096
	maxMemory   = 1 << 40 // bytes
	maxSpin     = time.Second
	maxInterval = time.Second
	maxRate     = 1e6 // Mbit/s
	maxName     = 63  // bytes of a device name
)

// keys lists all keys in the order of the reference.
var keys = slices.Concat(serviceKeys, limitKeys, containerLimitKeys, otherKeys, deviceKeys)

var serviceKeys = []key{
	text("state_dir", `a directory, such as "/run/roced"`, isAbsolute, func(c *Config) *string { return &c.StateDir }),
	choice("log_level", func(c *Config, level string) { c.LogLevel.UnmarshalText([]byte(level)) },
		logLevel(slog.LevelDebug), logLevel(slog.LevelInfo), logLevel(slog.LevelWarn), logLevel(slog.LevelError)),

	text("socket.path", `an absolute path of at most 107 bytes, such as "/run/roced/roced.sock"`, isSocketPath, func(c *Config) *string { return &c.Socket.Path }),
	fileMode("socket.mode", func(c *Config) *fs.FileMode { return &c.Socket.Mode }),
	text("socket.group", `a group name or number, or "" for the group of the service`, anyText, func(c *Config) *string { return &c.Socket.Group }),
	text("access.privileged_group", `a group name or number, or "" for root only`, anyText, func(c *Config) *string { return &c.Access.PrivilegedGroup }),
}

var limitKeys = append(limits("limits.", 1, func(c *Config) *Limits { return &c.Limits }),
	size("limits.total_memory", 0, maxMemory, func(c *Config) *uint64 { return &c.Limits.TotalMemory }))

var containerLimitKeys = limits("limits.container.", 0, func(c *Config) *Limits { return &c.ContainerLimits })

var otherKeys = []key{
	text("metrics.listen", `"unix:/run/roced/metrics.sock", "127.0.0.1:9464", or "" to disable metrics`, isListenAddress, func(c *Config) *string { return &c.Metrics.Listen }),
	text("metrics.hosts", `host names separated by commas, such as "roced.monitoring.svc", or "" for none`, anyText, func(c *Config) *string { return &c.Metrics.Hosts }),

	text("namespaces.device", fmt.Sprintf(`a name of at most %d letters, digits, and . _ -, or "" for none`, maxName), isDeviceName, func(c *Config) *string { return &c.Namespaces.Device }),
	mode("namespaces.network", func(c *Config) *hca.Network { return &c.Namespaces.Network }, hca.NetworkAuto, hca.NetworkXDP, hca.NetworkUDP),
	text("namespaces.users", `user names or numbers separated by commas, or "" for any`, anyText, func(c *Config) *string { return &c.Namespaces.Users }),
	text("namespaces.folder", `a directory, such as "/run/netns", or "" for any namespace`, isAbsoluteOrEmpty, func(c *Config) *string { return &c.Namespaces.Folder }),
	number("namespaces.cards", 1, maxCards, func(c *Config) *int { return &c.Namespaces.Cards }),
	number("namespaces.user_cards", 1, maxCards, func(c *Config) *int { return &c.Namespaces.UserCards }),
}

var deviceKeys = []key{
	text("device.interface", `the name of a network interface; "ip link" lists them`, isInterface, func(c *Config) *string { return &c.device().Interface }),
	text("device.name", fmt.Sprintf("a name of at most %d letters, digits, and . _ -", maxName), isDeviceName, func(c *Config) *string { return &c.device().Name }),
	mode("device.network", func(c *Config) *hca.Network { return &c.device().Network }, hca.NetworkAuto, hca.NetworkXDP, hca.NetworkUDP),
	mode("device.xdp", func(c *Config) *hca.XDPMode { return &c.device().XDP }, hca.XDPAuto, hca.XDPNative, hca.XDPGeneric),
	mode("device.af_xdp", func(c *Config) *hca.SocketMode { return &c.device().AFXDP }, hca.SocketAuto, hca.SocketCopy, hca.SocketZeroCopy),
	mode("device.send", func(c *Config) *hca.SendMode { return &c.device().Send }, hca.SendAuto, hca.SendAFXDP, hca.SendTrains),
	mode("device.membership", func(c *Config) *hca.MembershipMethod { return &c.device().Membership }, hca.MembershipAuto, hca.MembershipNetlink, hca.MembershipSocket),
	oneOf("device.rdma_mtu", func(c *Config) *int { return &c.device().RDMAMTU }, 0, 256, 512, 1024, 2048, 4096),
	oneOf("device.frames", func(c *Config) *int { return &c.device().Frames }, 0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
	number("device.workers", 1, hca.MaxWorkers, func(c *Config) *int { return &c.device().Workers }),
	duration("device.spin", 0, maxSpin, func(c *Config) *time.Duration { return &c.device().Spin }),
	mode("device.congestion", func(c *Config) *hca.Congestion { return &c.device().Congestion }, hca.CongestionAnswer, hca.CongestionMark, hca.CongestionOff),
	mode("device.recovery", func(c *Config) *hca.Recovery { return &c.device().Recovery }, hca.RecoverySelective, hca.RecoveryPlain),
	number("device.dcqcn.line_rate", 2, maxRate, func(c *Config) *int { return &c.device().DCQCN.LineRate }),
	number("device.dcqcn.min_rate", 1, maxRate, func(c *Config) *int { return &c.device().DCQCN.MinRate }),
	number("device.dcqcn.additive_rise", 1, maxRate, func(c *Config) *int { return &c.device().DCQCN.AdditiveRise }),
	number("device.dcqcn.hyper_rise", 1, maxRate, func(c *Config) *int { return &c.device().DCQCN.HyperRise }),
	number("device.tuning.defer_hard_irqs", 0, 1000, func(c *Config) *int { return &c.device().Tuning.DeferHardIRQs }),
	duration("device.tuning.gro_flush_timeout", 0, maxInterval, func(c *Config) *time.Duration { return &c.device().Tuning.GROFlushTimeout }),
	duration("device.tuning.busy_poll", 0, maxInterval, func(c *Config) *time.Duration { return &c.device().Tuning.BusyPoll }),
	number("device.tuning.busy_poll_budget", 0, 1024, func(c *Config) *int { return &c.device().Tuning.BusyPollBudget }),
}

// device returns the device whose keys are being read, the last.
func (c *Config) device() *Device { return &c.Devices[len(c.Devices)-1] }
