package labtest

import (
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/lab"
)

// CardsVariable is of the environment: the permanent addresses of two network cards, with a comma between, that
// Pair uses in place of a veth pair. hack/interop/kernels sets it in virtual machines whose cards have zero-copy.
const CardsVariable = "ROCED_CARDS"

// Cards are the two network cards' addresses; none where pairs are veths.
func Cards() []string {
	if list := os.Getenv(CardsVariable); list != "" {
		return strings.Split(list, ",")
	}
	return nil
}

// oneCards is held by the test that has the cards.
var oneCards sync.Mutex

func pairOfCards(t testing.TB, cards []string, options ...lab.VethOption) *PairLab {
	t.Helper()
	if len(cards) != 2 {
		t.Fatalf("%s=%s: it must be two addresses", CardsVariable, strings.Join(cards, ","))
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
	giveBack, err := lab.Cards(pair.A, pair.B, addresses, "eth0", "eth0", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := giveBack(); err != nil {
			t.Error(err)
		}
	})
	pair.addAddresses(t)
	return pair
}
