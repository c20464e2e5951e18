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
// and those with a worker, which the race detector can say something about. Each half has a seed of its
// own. To repeat a difference, run its half (-run) with the seed that it names.
func TestModel(t *testing.T) {
	steps, first, second := modelDefault, rand.Uint64(), rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv(modelVariable)); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv(modelSeed), 10, 64); err == nil {
		first, second = n, n
	}
	run := func(name string, seed uint64, options ...Option) {
		t.Run(name, func(t *testing.T) {
			model.Run(t, func(t *testing.T) verbstest.Pair { return wireEnds(t, options...) }, seed, steps/2)
		})
	}
	run("programs run the cards", first, WithoutWorker())
	run("with workers", second)
}
