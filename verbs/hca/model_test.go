package hca

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/roced/roced/verbs/verbstest"
)

// modelVariable is how many steps TestModel takes, and modelSeed their seed; "make model" sets the
// first.
const (
	modelVariable = "ROCED_MODEL"
	modelSeed     = "ROCED_MODEL_SEED"
	modelDefault  = 40_000
)

// TestModel holds cards on a wire in memory to the model: those that run in the program's thread only,
// and those with a worker, which the race detector can say something about.
func TestModel(t *testing.T) {
	steps, seed := modelDefault, rand.Uint64()
	if n, err := strconv.Atoi(os.Getenv(modelVariable)); err == nil {
		steps = n
	}
	if n, err := strconv.ParseUint(os.Getenv(modelSeed), 10, 64); err == nil {
		seed = n
	}
	for name, options := range map[string][]Option{"programs run the cards": {WithoutWorker()}, "with workers": nil} {
		t.Run(name, func(t *testing.T) {
			verbstest.RunModel(t, func(t *testing.T) verbstest.Pair { return wireEnds(t, options...) }, seed, steps/2)
		})
	}
}
