package run

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/server/peer"
)

// subUIDs is the host's file of users' further uids, which count as theirs.
const subUIDs = "/etc/subuid"

// newServer makes the server that programs talk to; it has no devices yet.
func newServer(c *config.Config, log *slog.Logger, listen func(string) (net.Listener, string, error)) (*server.Server, error) {
	group, err := groupID(c.Access.PrivilegedGroup)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("access.privileged_group: %w", err))
	}
	if err := memory.CheckKernel(); err != nil {
		return nil, err
	}
	return server.New(server.Config{Limits: limits(c), PrivilegedGroup: group, SubUIDs: subUIDs, Log: log, Listen: listen})
}

// limits are the configuration's in the server's terms.
func limits(c *config.Config) peer.Limits {
	list := limitsOf(c.Limits)
	list.All = quota.PoolLimits{Memory: totalMemory(c.Limits.TotalMemory), Descriptors: descriptors(), Mappings: mappings()}
	container := limitsOf(c.Limits.Except(c.ContainerLimits))
	list.Container = &container
	return list
}

func limitsOf(l config.Limits) peer.Limits {
	return peer.Limits{Connections: l.Clients, Limits: hca.Limits{
		PDs: l.PDs, MRs: l.MRs, CQs: l.CQs, QPs: l.QPs, AHs: l.AHs, SRQs: l.SRQs, XRCDs: l.XRCDs, CompChannels: l.Channels,
		Memberships: l.Memberships, Attachments: l.Attachments, IDs: l.IDs, EventChannels: l.EventChannels, Memory: l.Memory,
	}}
}
