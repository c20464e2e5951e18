// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

const (
	lifeSteps   = 5000 // steps with a pair, before a new one is created
	shrinkTries = 400
	shrinkTime  = time.Minute
	shownSteps  = 30 // logged steps in the report of a difference
	shownText   = 400
)

// Run executes random steps with a Provider and with the model, and compares errors, completions and memory after each.
// The steps are verbs calls of two programs with valid and invalid arguments. Run calls newPair for a new pair every
// few thousand steps.
//
// Run reports a difference with the seed and the fewest steps that reproduce it. The seed determines all steps, so that
// Run with the same seed repeats them.
func Run(t *testing.T, newPair func(t *testing.T) rig.Pair, seed uint64, steps int) {
	t.Helper()
	t.Logf("seed %d, %d steps", seed, steps)
	seen := tallies{}
	for life := uint64(0); steps > 0; life++ {
		run := &modelLife{newPair: newPair, seed: seed + life, steps: numbers(min(steps, lifeSteps)), seen: seen}
		if difference := run.play(t, fmt.Sprint("life ", life)); difference != nil {
			t.Errorf("seed %d, step %d: %s", run.seed, difference.step, difference)
			run.steps = numbers(difference.step + 1)
			t.Errorf("the fewest steps that lead to a difference: %s", run.shrink(t, difference))
			return
		}
		steps -= lifeSteps
	}
	seen.check(t)
}

func numbers(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// modelLife contains the steps with one pair. The seed, the number of the step and the existing objects determine a
// step, so that steps can be omitted and the others remain valid.
type modelLife struct {
	newPair func(t *testing.T) rig.Pair
	seed    uint64
	steps   []int
	seen    tallies
}

// difference describes a difference between the Provider and the model.
type difference struct {
	step int
	what string
	log  []string // previous steps
}

func (d *difference) String() string {
	log := d.log
	if len(log) > shownSteps {
		log = log[len(log)-shownSteps:]
	}
	text := d.what
	for _, line := range log {
		text += "\n\t" + line[:min(len(line), shownText)]
	}
	return text
}

// play executes the steps with a new pair, and returns the first difference. The inner test ends before the outer one,
// even if newPair calls t.Parallel.
func (l *modelLife) play(t *testing.T, name string) (found *difference) {
	t.Run(name, func(t *testing.T) {
		t.Run("", func(t *testing.T) {
			p := newPlayer(t, l.newPair(t), l.seen)
			for _, step := range l.steps {
				if found = p.play(l.seed, step); found != nil {
					return
				}
			}
		})
	})
	return found
}

// shrink omits steps as long as a difference remains, and returns the last difference.
func (l *modelLife) shrink(t *testing.T, last *difference) *difference {
	tries, end := 0, time.Now().Add(shrinkTime)
	for part := len(l.steps) / 2; part > 0; part /= 2 {
		for from := 0; from+part <= len(l.steps) && tries < shrinkTries && time.Now().Before(end); tries++ {
			fewer := *l
			fewer.steps = slices.Concat(l.steps[:from], l.steps[from+part:])
			if found := fewer.play(t, fmt.Sprint("shrink ", tries)); found != nil {
				last, l.steps = found, fewer.steps
				l.steps = l.steps[:slices.Index(l.steps, found.step)+1]
			} else {
				from += part
			}
		}
	}
	return last
}

// tallies counts the events of a run by name, to show its coverage.
type tallies map[string]int

// mustSee contains the events that a long run must include.
var mustSee = []string{
	"EINVAL", "ENOMEM", "EBUSY", "ENODATA", "EHOSTUNREACH", "ENOTSUP", "EOVERFLOW",
	"send success", "recv success", "send WR_FLUSH_ERR", "recv WR_FLUSH_ERR", "send LOC_LEN_ERR",
	"send LOC_PROT_ERR", "recv LOC_PROT_ERR", "send LOC_QP_OP_ERR",
	"drop qp_state", "drop qkey", "drop no_receive", "drop no_room", "drop protection", "drop cq_full", "drop self_loopback",
	"state RESET", "state INIT", "state RTR", "state RTS", "state SQD", "state SQE", "state ERR",
	"event CQ error", "event local work queue catastrophic error", "event send queue drained", "event SRQ limit reached", "event last WQE reached", "copy to a group", "overrun",
	"connected success", "connected WR_FLUSH_ERR", "connected LOC_LEN_ERR", "connected LOC_PROT_ERR", "connected MW_BIND_ERR", "connected LOC_ACCESS_ERR", "connected REM_INV_REQ_ERR",
	"connected REM_ACCESS_ERR", "connected REM_OP_ERR", "connected RNR_RETRY_EXC_ERR",
	"wrong signature", "XRC target in RTS", "XRC target in ERR",
	"event invalid request local work queue error", "event local access violation work queue error",
}

// manySteps is a number of steps that includes all events of mustSee.
const manySteps = 200_000

func (s tallies) check(t *testing.T) {
	t.Helper()
	t.Logf("seen: %v", map[string]int(s))
	for _, what := range mustSee {
		if s["step"] >= manySteps && s[what] == 0 {
			t.Errorf("%q did not occur in %d steps", what, s["step"])
		}
	}
}

// statusNames contains the names of libibverbs.
var statusNames = map[verbs.WCStatus]string{
	verbs.WCSuccess: "success", verbs.WCWRFlushErr: "WR_FLUSH_ERR", verbs.WCLocLenErr: "LOC_LEN_ERR",
	verbs.WCLocProtErr: "LOC_PROT_ERR", verbs.WCMWBindErr: "MW_BIND_ERR", verbs.WCLocQPOpErr: "LOC_QP_OP_ERR",
	verbs.WCLocAccessErr: "LOC_ACCESS_ERR", verbs.WCRemInvReqErr: "REM_INV_REQ_ERR", verbs.WCRemAccessErr: "REM_ACCESS_ERR", verbs.WCRemOpErr: "REM_OP_ERR", verbs.WCRNRRetryExcErr: "RNR_RETRY_EXC_ERR",
}
