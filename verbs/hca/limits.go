// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
)

// Limits holds the maximum numbers of objects that a session can have at once. 0 stands for the card's limit.
type Limits = quota.Limits

// The limits of a card. QueryDevice returns them unless the session has smaller ones.
const (
	maxQP          = 16384
	maxQPWR        = 16384 // requests per queue
	maxSRQ         = 16384
	maxXRCD        = 1 << 12
	maxSRQWR       = 16384 // receives per SRQ
	maxSRQQueues   = 32    // queues with receives of one SRQ, from resizes: a packet may search all of them
	maxCQ          = 16384
	maxCQE         = 1 << 18
	maxMR          = 1 << 16
	maxCompChannel = 1024 // also the number of event channels
	maxPD          = 1 << 14
	maxAH          = 1 << 17
	maxMRSize      = 1 << 38 // bytes: the range of an ib.DMAAddr
	maxAlloc       = 1 << 30 // bytes of one piece of memory that the card allocates
	maxInline      = 512     // bytes
	maxMemberships = 1 << 16
	maxIDs         = 1 << 16
	maxMemory      = 1 << 40 // bytes: no limit in practice
)

// groupLimits holds a card's limits of groups. The steering table has room for as many groups.
var groupLimits = mcast.Limits{Groups: 16384, QPsPerGroup: maxQP, Attachments: 1 << 18}

func checkPort(port uint8) error {
	if port != 1 {
		return fmt.Errorf("%w: port %d; the device has port 1", verbs.ErrInvalid, port)
	}
	return nil
}
