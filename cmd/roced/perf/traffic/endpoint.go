// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// depth is the capacity of perf's queue pairs in each direction, in messages.
const depth = 1024

// EndpointOptions returns the options of both sides.
func EndpointOptions(source verbs.GID, spin bool) ud.Options {
	return ud.Options{QKey: card.TestQKey, RecvDepth: depth, SendDepth: depth, Source: source.Addr(), Spin: spin}
}

// WhyNoTrains returns the card's reason for not sending trains, or the empty string.
func WhyNoTrains(d *card.Device) string {
	attr, err := d.QueryDevice()
	if err != nil {
		return ""
	}
	return attr.SendReason
}
