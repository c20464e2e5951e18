// SPDX-License-Identifier: Apache-2.0

package device

import (
	"log/slog"
	"math/bits"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// options returns the options of a service's card. Its programs are in other processes, so the card never
// runs inline.
func options(c config.Device, stateDir string, log *slog.Logger) []hca.Option {
	list := []hca.Option{
		hca.WithLogger(log), hca.WithStateDir(stateDir), hca.WithoutInline(),
		hca.WithNetwork(c.Network), hca.WithXDPMode(c.XDP), hca.WithSocketMode(c.AFXDP), hca.WithSendMode(c.Send), hca.WithMembership(c.Membership),
		hca.WithSpin(c.Spin), hca.WithFrames(uint32(c.Frames)), hca.WithWorkers(c.Workers), hca.WithTuning(c.Tuning),
		hca.WithCongestion(c.Congestion), hca.WithDCQCN(c.DCQCN.Parameters()), hca.WithRecovery(c.Recovery),
	}
	if c.RDMAMTU > 0 {
		list = append(list, hca.WithMTU(mtu(c.RDMAMTU)))
	}
	return list
}

// mtu converts an RDMA MTU in bytes: 256 is 1, 4096 is 5.
func mtu(bytes int) verbs.MTU { return verbs.MTU256 + verbs.MTU(bits.Len(uint(bytes))-bits.Len(256)) }
