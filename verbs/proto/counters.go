// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"strconv"

	"github.com/roced/roced/verbs/provider"
)

// The commands on counters of queue pairs.
var (
	CreateCounters  = of(provider.CreateCounters, none, visitCountersObject)
	AttachCounters  = of(provider.AttachCounters, visitAttachCounters, none)
	ReadQPCounters  = of(provider.ReadCounters, visitReadQPCounters, visitQPCounters)
	DestroyCounters = of(provider.DestroyCounters, visitDestroyCounters, none)
)

func visitCountersObject(c *coder, g *provider.CreateCountersGrant) {
	visitHandle(c, "counters", &g.Counters)
}

func visitAttachCounters(c *coder, r *provider.AttachCountersRequest) {
	u32(c, "counters", &r.Counters)
	u32(c, "of", &r.Of)
	u32(c, "what", &r.What)
	u32(c, "index", &r.Index)
}

func visitReadQPCounters(c *coder, r *provider.ReadCountersRequest) {
	visitHandle(c, "counters", &r.Counters)
}

func visitQPCounters(c *coder, g *provider.ReadCountersGrant) {
	for i := range g.Values {
		u64(c, "value"+strconv.Itoa(i), &g.Values[i])
	}
}

func visitDestroyCounters(c *coder, r *provider.DestroyCountersRequest) {
	visitHandle(c, "counters", &r.Counters)
}
