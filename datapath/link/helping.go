package link

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A worker that sleeps has to be woken for a frame, which takes longer than to deal with one. So a sender whose thread
// is a worker too may run the receiver's rounds itself, for a few short frames, when its own round is over. Where there
// are more, two workers are quicker.

// fewFrames is how many a sender deals with itself.
const fewFrames = 4

// SetHelp implements Port.
func (p *port) SetHelp(help func() (done bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.help = help
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
	p.arrived.Store(int64(p.in.count))
	switch {
	case !p.asleep.Load() || p.closed:
	case sender != nil && sender.putsOff && p.help != nil && p.in.count <= fewFrames && p.in.held == 0:
		if !slices.Contains(sender.owed, Port(p)) {
			sender.owed = append(sender.owed, p)
		}
	default:
		one := [8]byte{1}
		_, _ = unix.Write(p.wakeFD, one[:])
	}
}

// Help implements Port.
func (p *port) Help() {
	p.mu.Lock()
	help := p.help
	p.mu.Unlock()
	if !help() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.noteArrived(nil)
	}
}
