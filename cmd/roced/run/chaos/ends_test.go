// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
)

// TestServiceEndsUnderLoad: the service is stopped repeatedly under random load. It stops cleanly, and
// programs connect to the next one: four times, or eight times in "make chaos".
func TestServiceEndsUnderLoad(t *testing.T) {
	w := newWorld(t, xdp, queues)
	w.startAll()
	w.stabilise()
	w.queryAll(w.programs[:], func(int) order { return order{Do: "wild", Seed: 1} })
	r := rand.New(rand.NewPCG(1, 1))
	times := max(2, waittest.Often(4))
	if os.Getenv(chaosVariable) != "" {
		times = 8
	}
	for range times {
		pause(r, 500*time.Millisecond)
		for _, h := range w.hosts {
			h.terminate(t)
			h.start(t)
			h.await(t)
		}
	}
	w.rounds(1)
	w.endAll()
}
