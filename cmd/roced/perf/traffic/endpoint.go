package traffic

import (
	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// depth is how many messages a queue pair of perf can hold each way.
const depth = 1024

// EndpointOptions are those of both sides.
func EndpointOptions(source verbs.GID, spin bool) ud.Options {
	return ud.Options{QKey: card.TestQKey, RecvDepth: depth, SendDepth: depth, Source: source.Addr(), Spin: spin}
}

// WhyNoTrains is what a card says now; empty if it says nothing.
func WhyNoTrains(d *card.Device) string {
	attr, err := d.QueryDevice()
	if err != nil {
		return ""
	}
	return attr.SendReason
}
