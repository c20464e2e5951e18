package verbstest

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Pair is two cards that reach each other, and a session on each. Beside is the one field that may
// be left out.
type Pair struct {
	A, B End
	// Unreachable is an IPv4 address that is neither card's and that no route leads to.
	Unreachable netip.Addr
	// Beside gives another session on A's card; nil where there can be none.
	Beside func() provider.Provider
}

// End is a session that no Context has claimed, and its card. The card has an address of each
// kind. The functions change the card's world, and fail the test if they cannot; each may be nil,
// the other fields are required.
type End struct {
	Provider  provider.Provider
	IPv4      netip.Addr
	IPv6      netip.Addr // not a link-local one
	LinkLocal netip.Addr // of IPv6
	MAC       verbs.MAC  // which peers see

	SetLink       func(up bool)
	AddAddress    func(netip.Addr)
	RemoveAddress func(netip.Addr)
	SetMTU        func(bytes int) // the interface's
}

// addresses are one of each kind.
func (e *End) addresses() []netip.Addr { return []netip.Addr{e.IPv4, e.IPv6, e.LinkLocal} }

// test is a promise of the API.
type test struct {
	name string
	run  func(t *testing.T, w *world)
	// rounds is how often it runs, with a new pair each: it looks for what happens seldom.
	rounds int
	// needs says whether the pair has what the test changes; nil: it needs nothing.
	needs func(p *Pair) bool
}

// Run runs all tests, each as a test of its own and over a pair of its own, made by newPair with
// that test's T. A pair of which a required field is empty fails before any of them.
func Run(t *testing.T, newPair func(t *testing.T) Pair) {
	t.Helper()
	if !isWhole(t, newPair) {
		return
	}
	for _, test := range all() {
		for round := range max(test.rounds, 1) {
			name := test.name
			if test.rounds > 1 {
				name = fmt.Sprintf("%s %d", test.name, round+1)
			}
			t.Run(name, func(t *testing.T) {
				pair := newPair(t)
				if test.needs == nil || test.needs(&pair) {
					test.run(t, newWorld(t, pair))
				}
			})
		}
	}
}

func all() []test {
	return slices.Concat(
		objectTests, limitTests, createTests, queryTests, capabilityTests, hwStatsTests, // objects and their life
		stateTests, modifyTests, sqdTests, specialTests, connectedTests, rdmaTests, rdmaErrorTests, rdmaStateTests, windowTests, revokeTests, // states and kinds of queue pairs
		srqTests, srqResizeTests, srqEventTests, srqLoadTests, // shared receive queues
		postTests, sendTests, memoryTests, accessTests, iovaTests, keyTests, reregTests, // what a request says
		ahTests, modifyAHTests, headerTests, // where it goes
		flowTests, overrunTests, drainTests, foundTests, resizeTests, // queues
		notifyTests, channelTests, moderationTests, timestampTests, // events of CQs
		waitTests, pollerTests, closeTests, // who waits, and the end
		groupTests, joinTests, eventTests, portTests,
		idTests, idJoinTests, idConnectTests, idConnectionTests, idConnectedTests, // connection ids
		commandTests, // what a hostile client asks
	)
}
