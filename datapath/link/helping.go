package link

import "slices"

// A worker that sleeps has to be woken for a frame, which takes longer than to deal with one. So a sender whose thread
// is a worker too may run the receiver's rounds itself, for a few short frames, when its own round is over. Where there
// are more, two workers are quicker.

// fewFrames is how many a sender deals with itself.
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

// noteArrived updates p.arrived and has a sleeping worker woken, or the sender help, which is nil if it cannot. The
// caller holds mu.
func (p *port) noteArrived(sender *port) {
	p.arrived.Store(int64(p.in.count)) // then asleep: pairs with SetAsleep, and then Receive
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

// helps says whether a sender, whose round it is, helps a port. The caller holds that one's mu.
func (p *port) helps(to *port) bool {
	return p.putsOff && p.user != nil && p.user == to.user && to.help != nil && to.in.isLittle()
}

// isLittle says whether to wake somebody for the frames takes longer than to deal with them.
func (f *frames) isLittle() bool { return f.count <= fewFrames && f.held == 0 }

// Help implements Port. A worker that is awake, or was woken for more frames, finds them by itself.
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
