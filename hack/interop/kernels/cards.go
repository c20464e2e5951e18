// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/roced/roced/hack/interop/suite"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
	"github.com/vishvananda/netlink"
)

// cardsTag is the build tag of tests over network cards with zero-copy.
const cardsTag = "cards"

// cardsMTU is the MTU of the bridge between the cards.
const cardsMTU = 9000

// cardSuites returns the tests that run with a pair of cards: those with the build tag, and those of copy mode that
// require only two connected hosts and drop counters for all losses.
func cardSuites(run string) []suite.Suite {
	const tests = "^(TestZeroCopy.*|TestSoak|TestAddressesAreFollowed|TestHeaders|TestWorkerAlone|TestOtherTraffic|TestCloseAndOpenAgain|TestOpenAfterKill)$"
	return []suite.Suite{{Name: "verbs/hca", Run: cmp.Or(run, tests), Must: true, Tags: cardsTag}}
}

// onCards runs the tests with cards in a machine for each model, and returns the number of failed suites.
func onCards(ctx context.Context, o options, share string) (failed int, err error) {
	suites, err := build(ctx, share, cardSuites(o.run), o.only)
	if errors.Is(err, errNoPackage) && !o.cards {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	models := vm.Models
	if o.model != "" {
		models = []vm.Model{vm.Model(o.model)}
	}
	for _, model := range models {
		n, err := onModel(ctx, model, share, suites, o)
		if err != nil {
			return failed, fmt.Errorf("machine with %s: %w", model, err)
		}
		failed += n
	}
	return failed, nil
}

// onModel boots a machine with two cards on a bridge, and runs the suites there:
//
//	guest: namespace A  eth0 ── TAP ── bridge ── TAP ── eth0  namespace B
func onModel(ctx context.Context, model vm.Model, share string, suites []suite.Suite, o options) (failed int, err error) {
	image, err := vm.Image(ctx, vm.Newest, os.Stderr)
	if err != nil {
		return 0, err
	}
	bridge, err := lab.NewBridge(namespacePrefix)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bridge.Close()) }()
	queues := 1
	if model == vm.Virtio {
		queues = 2
	}
	var cards []vm.Card
	for range 2 {
		tap, err := bridge.TapQueues(cardsMTU, queues)
		if err != nil {
			return 0, err
		}
		if err := bridge.Netlink().LinkSetTxQLen(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: tap}}, cardsBacklog); err != nil {
			return 0, fmt.Errorf("queue of %s: %w", tap, err)
		}
		cards = append(cards, vm.Card{Model: model, Tap: tap, Queues: queues})
	}
	const name = "guest"
	guest, err := vm.Boot(ctx, vm.Config{
		Name: name, Image: image, Namespace: bridge.Namespace, Cards: cards, MTU: 1500,
		Memory: guestMemory, CPUs: guestCPUs, Share: share, NoRXE: true,
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, guest.Close()) }()
	fmt.Printf("\nLinux %s, two cards %s with zero-copy\n", vm.Release(image), model)
	configured := make([]suite.Suite, len(suites))
	for i, s := range suites {
		s.Environment = fmt.Sprintf("ROCED_CARDS=%v,%v ROCED_SOAK=%d", vm.MAC(name, 0), vm.MAC(name, 1), cardsSoak)
		configured[i] = s
	}
	return runAll(ctx, guest, configured, o.timeout)
}

// cardsBacklog is the queue length of a TAP in packets. It is large, since no card would count packets that are dropped
// there.
const cardsBacklog = 20000

// cardsSoak is the number of messages that the soak test sends over the emulated cards.
const cardsSoak = 20000
