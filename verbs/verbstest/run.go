// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/roced/roced/verbs/verbstest/hostile"
	"github.com/roced/roced/verbs/verbstest/ids"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Pair contains two cards that reach each other, and End a session on one of them. See package rig.
type (
	Pair = rig.Pair
	End  = rig.End
)

// Run runs all tests as subtests. Each calls newPair with its own T and uses a new pair. If a required field of the
// pair is empty, Run fails before the first test.
func Run(t *testing.T, newPair func(t *testing.T) Pair) {
	t.Helper()
	if !rig.IsWhole(t, newPair) {
		return
	}
	for _, test := range all() {
		for round := range rig.Often(test.Rounds) {
			name := test.Name
			if test.Rounds > 1 {
				name = fmt.Sprintf("%s %d", test.Name, round+1)
			}
			t.Run(name, func(t *testing.T) {
				pair := newPair(t)
				if test.Needs == nil || test.Needs(&pair) {
					test.Run(t, rig.NewWorld(t, pair))
				}
			})
		}
	}
}

func all() []rig.Test {
	return slices.Concat(
		objectTests, limitTests, createTests, queryTests, findTests, capabilityTests, hwStatsTests, // objects and their life cycle
		stateTests, modifyTests, sqdTests, specialTests, connectedTests, rdmaTests, rdmaErrorTests, rdmaStateTests, windowTests, fastMRTests, integrityTests, dmaTests, revokeTests, // states and types of queue pairs
		xrcTests, xrcDomainTests, // XRC
		srqTests, srqResizeTests, srqEventTests, srqLoadTests, // shared receive queues
		postTests, sendTests, memoryTests, accessTests, smallTests, nullMRTests, countersTests, iovaTests, keyTests, reregTests, // requests
		ahTests, modifyAHTests, headerTests, // addresses and headers
		flowTests, overrunTests, drainTests, foundTests, resizeTests, // queues
		notifyTests, channelTests, handlerTests, moderationTests, timestampTests, // events of CQs
		waitTests, pollerTests, closeTests, // waiting and closing
		groupTests, joinTests, eventTests, portTests,
		ids.Tests, hostile.Tests,
	)
}
