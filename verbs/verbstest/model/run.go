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
	lifeSteps   = 5000 // of a pair; then another begins with a fresh one
	shrinkTries = 400
	shrinkTime  = time.Minute
	shownSteps  = 30 // of those that led to a difference
	shownText   = 400
)

// Run takes so many random steps with a Provider and with the model, and compares after each:
// every error, every completion, every byte of memory. The steps are verbs calls of two programs, with
// arguments good and bad. newPair is Run's; it is asked for a fresh pair every few thousand steps.
//
// A difference is reported with the seed, and with the fewest steps that still lead to it. The seed
// decides every step, so Run with the same one repeats it.
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

// modelLife is the steps with one pair. A step is determined by the seed, its number, and what
// there is: so steps can be left out, and the others still are steps.
type modelLife struct {
	newPair func(t *testing.T) rig.Pair
	seed    uint64
	steps   []int
	seen    tallies
}

// difference is where Provider and model part.
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

// play takes the steps with a fresh pair, and gives the first difference. The inner test has ended
// when the outer one has, though newPair may call t.Parallel.
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

// shrink leaves out steps as long as there is a difference, and gives the last.
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

// tallies count the events of a run, so that it shows its coverage.
type tallies map[string]int

// mustSee are the events that a long run must contain for sufficient coverage.
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

// manySteps are enough steps for all events of mustSee.
const manySteps = 200_000

func (s tallies) check(t *testing.T) {
	t.Helper()
	t.Logf("seen: %v", map[string]int(s))
	for _, what := range mustSee {
		if s["step"] >= manySteps && s[what] == 0 {
			t.Errorf("%d steps, and %q was never seen", s["step"], what)
		}
	}
}

// statusNames are those of libibverbs.
var statusNames = map[verbs.WCStatus]string{
	verbs.WCSuccess: "success", verbs.WCWRFlushErr: "WR_FLUSH_ERR", verbs.WCLocLenErr: "LOC_LEN_ERR",
	verbs.WCLocProtErr: "LOC_PROT_ERR", verbs.WCMWBindErr: "MW_BIND_ERR", verbs.WCLocQPOpErr: "LOC_QP_OP_ERR",
	verbs.WCLocAccessErr: "LOC_ACCESS_ERR", verbs.WCRemInvReqErr: "REM_INV_REQ_ERR", verbs.WCRemAccessErr: "REM_ACCESS_ERR", verbs.WCRemOpErr: "REM_OP_ERR", verbs.WCRNRRetryExcErr: "RNR_RETRY_EXC_ERR",
}
