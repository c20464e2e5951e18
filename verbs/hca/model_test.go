package hca

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/roced/roced/verbs/verbstest"
	"github.com/roced/roced/verbs/verbstest/model"
)

// modelVariable is how many steps TestModel takes; "make model" sets it. modelSeed is the seed of a
// difference that is to be repeated.
const (
	modelVariable = "ROCED_MODEL"
	modelSeed     = "ROCED_MODEL_SEED"
	modelDefault  = 40_000
)

// TestModel holds cards on a network in memory to the model: those that run in the program's thread only,
// those with a worker, and those with several, which the race detector can say something about. Each has a seed of its
// own. To repeat a difference, run it alone (-run) with the seed that it names.
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
