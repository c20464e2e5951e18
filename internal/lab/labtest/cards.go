// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/lab"
)

// CardsVariable is an environment variable with the permanent addresses of two network cards, separated by a
// comma, which Pair uses instead of a veth pair. hack/interop/kernels sets it in virtual machines whose cards
// support zero-copy.
const CardsVariable = "ROCED_CARDS"

// Cards returns the addresses of the two network cards; none if pairs are veths.
func Cards() []string {
	if list := os.Getenv(CardsVariable); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// oneCards is held by the test that uses the cards.
var oneCards sync.Mutex

func pairOfCards(t testing.TB, cards []string, options ...lab.VethOption) *PairLab {
	t.Helper()
	if len(cards) != 2 {
		t.Fatalf("%s must be two addresses: %s", CardsVariable, strings.Join(cards, ","))
	}
	var addresses [2]net.HardwareAddr
	for i, card := range cards {
		var err error
		if addresses[i], err = net.ParseMAC(card); err != nil {
			t.Fatal(err)
		}
	}
	oneCards.Lock()
	t.Cleanup(oneCards.Unlock)
	pair := &PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}
	restore, err := lab.Cards(pair.A, pair.B, addresses, "eth0", "eth0", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := restore(); err != nil {
			t.Error(err)
		}
	})
	pair.addAddresses(t)
	return pair
}
