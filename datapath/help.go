package datapath

import "github.com/roced/roced/datapath/link"

// helper is of an engine whose worker runs rounds of others, and they its rounds: on a network in memory, for a few
// short packets, where the other worker sleeps. To wake that takes longer than they do. All programs of both cards are
// of one user: what one has a worker wait for, it has its own programs wait for.
//
//	round: this engine's, under its lease ──► then, under no lease, help of those that packets came to
type helper struct {
	engine *Engine
	port   link.Port
}

const (
	// helpRounds is how many rounds of another engine are run at once: one for the packets, one that finds no more, and
	// one more if something came meanwhile.
	helpRounds = 3
	// mostHelped is how many engines are helped in a round; the workers of others are woken.
	mostHelped = 2
)

// newHelper gives an engine its helper; nil if programs run its rounds, or a card has several.
func newHelper(e *Engine, alone bool) *helper {
	if !alone || e.memory == nil || e.others != nil {
		return nil
	}
	return &helper{e, e.memory}
}

// setUser says whose programs use the card; nil: nobody's, or several users'. It runs in Do.
func (h *helper) setUser(user any) { h.port.SetHelp(user, h.help) }

// round runs a round for the worker, and helps. The caller has taken the lease, which round releases.
func (h *helper) round() (worked, more bool) {
	worked, more, owed := h.runOwing()
	few := min(mostHelped, len(owed))
	for _, p := range owed[few:] { // before this thread is busy with others
		p.Call()
	}
	goesOn := true
	for _, p := range owed[:few] {
		if goesOn {
			goesOn = p.Help()
		} else {
			p.Call()
		}
	}
	clear(owed) // ports that may be closed
	return worked, more
}

func (h *helper) runOwing() (worked, more bool, owed []link.Port) {
	e := h.engine
	defer e.lease.Unlock()
	if e.closed {
		return false, false, nil
	}
	h.port.PutOffWakes()
	worked = e.runRound()
	return worked, e.more(), h.port.TakeWakes()
}

// help runs rounds in the thread of another engine's worker. It says whether the worker, which sleeps, is not needed.
func (h *helper) help() (done bool) {
	e := h.engine
	for range helpRounds {
		if e.wanted.Load() != 0 || !e.lease.TryLock() {
			return false
		}
		worked, more, ran := e.runHeld(listens)
		if !ran || !worked {
			return !more
		}
	}
	return false
}
