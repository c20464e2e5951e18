package conn

// window bounds how many packets are on their way. A loss halves it, and it grows by an eighth with each window
// that arrives. The PSNs of READs do not count: their packets are the peer's.
//
// What a card's receive ring has room for is shared by those that send; so who drives a requester gives it a
// share, which bounds the window too, but never below the smallest.
type window struct {
	size    uint32 // packets
	arrived uint32 // packets acknowledged since it grew
	unasked uint32 // packets since the last that asked for an acknowledgement
}

const (
	maxWindow = 128 // packets, as Soft-RoCE's
	minWindow = 4
	// askGap is after how many packets of a long message an acknowledgement is asked for.
	askGap = 32
)

// of is the window under a share.
func (w *window) of(share uint32) uint32 { return min(w.size, max(minWindow, share)) }

// arrive notes that packets are acknowledged.
func (w *window) arrive(packets uint32) {
	if w.arrived += packets; w.arrived >= w.size {
		w.arrived, w.size = 0, min(w.size+w.size/8+1, maxWindow)
	}
}

// halve is for a loss.
func (w *window) halve() { w.size = max(w.size/2, minWindow) }

// asks says whether the next packet asks for an acknowledgement, wherever in its message it is.
func (w *window) asks(share uint32) bool {
	return w.unasked+1 >= askGap || w.unasked+1 >= w.of(share)/2
}

// windowFull says that as many packets are on their way as may be. It is not full while no answer to any of them
// is asked for.
func (r *Requester) windowFull(share uint32) bool {
	flying := r.PSN.Ahead(r.afterRead)
	return flying >= int(r.window.of(share)) && flying > int(r.unasked)
}

// Window is how many packets may be on their way under a share.
func (r *Requester) Window(share uint32) uint32 { return r.window.of(share) }
