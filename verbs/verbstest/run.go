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

// Pair is two cards that reach each other, and End a session of one; see package rig.
type (
	Pair = rig.Pair
	End  = rig.End
)

// Run runs all tests, each as a test of its own and over a pair of its own, made by newPair with
// that test's T. A pair of which a required field is empty fails before any of them.
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
		objectTests, limitTests, createTests, queryTests, findTests, capabilityTests, hwStatsTests, // objects and their life
		stateTests, modifyTests, sqdTests, specialTests, connectedTests, rdmaTests, rdmaErrorTests, rdmaStateTests, windowTests, fastMRTests, integrityTests, dmaTests, revokeTests, // states and kinds of queue pairs
		xrcTests, xrcDomainTests, // XRC
		srqTests, srqResizeTests, srqEventTests, srqLoadTests, // shared receive queues
		postTests, sendTests, memoryTests, accessTests, smallTests, nullMRTests, countersTests, iovaTests, keyTests, reregTests, // requests
		ahTests, modifyAHTests, headerTests, // where it goes
		flowTests, overrunTests, drainTests, foundTests, resizeTests, // queues
		notifyTests, channelTests, handlerTests, moderationTests, timestampTests, // events of CQs
		waitTests, pollerTests, closeTests, // waiting, and the end
		groupTests, joinTests, eventTests, portTests,
		ids.Tests, hostile.Tests,
	)
}
