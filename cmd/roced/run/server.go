// SPDX-License-Identifier: Apache-2.0

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

// subUIDs is the file of users' subordinate uids, which count as the user's.
const subUIDs = "/etc/subuid"

// newServer creates the server for programs, without devices.
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

// limits converts the configured limits.
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
