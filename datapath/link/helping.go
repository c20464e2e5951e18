// SPDX-License-Identifier: Apache-2.0

package link

import "slices"

// Waking a sleeping worker takes longer than processing one frame. A worker that has sent a few short frames may
// therefore run the receiver's rounds itself, after its own round. For more frames, two workers are faster.

// fewFrames is the maximum number of frames that a sender processes on behalf of the receiver.
const fewFrames = 4

// SetHelp implements Port.
func (p *port) SetHelp(user any, help func() (done bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user, p.help = user, help
}

// PutOffWakes implements Port.
func (p *port) PutOffWakes() { p.putsOff = true }

// TakeWakes implements Port.
func (p *port) TakeWakes() (owed []Port) {
	owed, p.putsOff = p.owed, false
	p.owed = p.owed[:0]
	return owed
}

// noteArrived updates p.arrived after frames have arrived. If the worker sleeps, noteArrived wakes it, or lists the
// port for help by sender if sender is not nil and can help. The caller holds mu.
func (p *port) noteArrived(sender *port) {
	p.arrived.Store(int64(p.in.count)) // before asleep is loaded: pairs with SetAsleep followed by Receive
	switch {
	case p.in.count == 0 || !p.asleep.Load() || p.closed:
	case sender != nil && sender.helps(p):
		if !slices.Contains(sender.owed, Port(p)) {
			sender.owed = append(sender.owed, p)
		}
	default:
		p.wake()
	}
}

// helps reports whether p, the sender in its own round, can help the receiver to. The caller holds to.mu.
func (p *port) helps(to *port) bool {
	return p.putsOff && p.user != nil && p.user == to.user && to.help != nil && to.in.isLittle()
}

// isLittle reports whether processing the frames takes less time than waking a worker for them.
func (f *frames) isLittle() bool { return f.count <= fewFrames && f.held == 0 }

// Help implements Port. If the worker is awake, or was woken for more frames, it needs no help.
func (p *port) Help() bool {
	p.mu.Lock()
	help, needed := p.help, p.asleep.Load() && p.in.isLittle()
	p.mu.Unlock()
	if !needed || help == nil || help() {
		return true
	}
	p.Call()
	return false
}

// Call implements Port.
func (p *port) Call() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteArrived(nil)
}
