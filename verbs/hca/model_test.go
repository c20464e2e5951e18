// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/roced/roced/verbs/verbstest"
	"github.com/roced/roced/verbs/verbstest/model"
)

// modelVariable sets the number of steps of TestModel, as "make model" does. modelSeed sets the seed, to repeat a
// failure.
const (
	modelVariable = "ROCED_MODEL"
	modelSeed     = "ROCED_MODEL_SEED"
	modelDefault  = 40_000
)

// TestModel compares cards on an in-memory network with the model: cards that run only in the program's thread, with
// one worker, and with several workers, for the race detector. Each run has its own seed. To repeat a failure, run it
// alone (-run) with the seed that it prints.
func TestModel(t *testing.T) {
	steps, first, second, third := often(modelDefault), rand.Uint64(), rand.Uint64(), rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv(modelVariable)); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv(modelSeed), 10, 64); err == nil {
		first, second, third = n, n, n
	}
	run := func(name string, seed uint64, options ...Option) {
		t.Run(name, func(t *testing.T) {
			model.Run(t, func(t *testing.T) verbstest.Pair { return wireEnds(t, options...) }, seed, steps/3)
		})
	}
	run("programs run the cards", first, WithoutWorker())
	run("with workers", second)
	run("with three workers each", third, WithWorkers(3))
}
