package datapath

import "github.com/roced/roced/datapath/link"

// helper is of an engine whose worker runs rounds of others, and they its rounds: on a network in memory, for a few
// short packets, where the other worker sleeps. To wake that takes longer than they do.
//
//	round: this engine's, under its lease ──► then, under no lease, help of each that packets came to
type helper struct {
	engine *Engine
	port   link.Port
}

// helpRounds is how many rounds of another engine are run at once: one for the packets, one that finds no more, and one
// more if something came meanwhile.
const helpRounds = 3

// newHelper gives an engine its helper; nil if programs run its rounds, or a card has several.
func newHelper(e *Engine, alone bool) *helper {
	if !alone || e.memory == nil || e.others != nil {
		return nil
	}
	h := &helper{e, e.memory}
	h.port.SetHelp(h.help)
	return h
}

// round runs a round for the worker, and helps. The caller has taken the lease, which round releases.
func (h *helper) round() (worked, more bool) {
	worked, more, owed := h.runOwing()
	for _, p := range owed {
		p.Help()
	}
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
		worked, more, ran := e.runHeld(false)
		if !ran || !worked && !more {
			return true
		}
	}
	return false
}
