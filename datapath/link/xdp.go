package link

import (
	"errors"

	"github.com/roced/roced/datapath/xsk"
)

// XDP is a Link over AF_XDP sockets, one for each receive queue of an
// interface: a socket sees the frames of its own queue only. It sends through
// the first.
type XDP struct {
	sockets  []*xsk.Socket
	turn     int         // the socket that Receive tries first
	borrowed *xsk.Socket // the socket whose frames the last Receive returned
	frames   [MaxBurst]xsk.Received

	reserved xsk.Reserved
	holding  bool // reserved has not been committed
	unkicked int  // frames committed since the last kick
}

// NewXDP makes a link of sockets, which it owns from then on.
func NewXDP(sockets []*xsk.Socket) *XDP { return &XDP{sockets: sockets} }

// Receive implements Link. All frames of a burst are from one socket; the sockets take turns.
func (l *XDP) Receive(burst [][]byte) int {
	for range l.sockets {
		s := l.sockets[l.turn]
		if l.turn++; l.turn == len(l.sockets) {
			l.turn = 0
		}
		n := s.Receive(l.frames[:min(len(burst), MaxBurst)])
		if n == 0 {
			s.WakeReceive()
			continue
		}
		l.borrowed = s
		for i := range l.frames[:n] {
			burst[i] = l.frames[i].Data
		}
		return n
	}
	return 0
}

// Release implements Link. If the fill ring was empty, the kernel is woken when Receive next finds
// no frame.
func (l *XDP) Release() { l.borrowed.Release() }

// Reserve implements Link.
func (l *XDP) Reserve() []byte {
	if !l.holding {
		if l.reserved, l.holding = l.sockets[0].Reserve(); !l.holding {
			return nil
		}
	}
	return l.reserved.Bytes()
}

// Commit implements Link. It flushes when there are as many frames as one kick moves. In copy mode
// that makes no more kicks than a later flush would, and the few frames in use stay in the
// processor's cache.
func (l *XDP) Commit(length int) {
	l.sockets[0].Submit(l.reserved, length)
	l.holding = false
	if l.unkicked++; l.unkicked == xsk.KickFrames {
		l.Flush()
	}
}

// Flush implements Link. If the interface has gone it returns true: there is no point in trying
// again.
func (l *XDP) Flush() bool {
	l.unkicked = 0
	return l.sockets[0].Flush() == 0 || errors.Is(l.sockets[0].Err(), xsk.ErrGone)
}

// TakeBack implements Link.
func (l *XDP) TakeBack() { l.sockets[0].TakeBack() }

// TakenBack implements Link.
func (l *XDP) TakenBack() int { return l.sockets[0].TakenBack() }

// Refused implements Link.
func (l *XDP) Refused() int { return l.sockets[0].Refused() }

// Descriptors implements Link.
func (l *XDP) Descriptors() []int {
	fds := make([]int, len(l.sockets))
	for i, s := range l.sockets {
		fds[i] = s.FD()
	}
	return fds
}

// SetAsleep implements Link. The kernel makes a socket readable when a frame is in its ring,
// always.
func (l *XDP) SetAsleep(bool) {}

// Statistics sums the kernel's counters over the sockets. Any goroutine may call it.
func (l *XDP) Statistics() (sum xsk.Statistics, err error) {
	for _, s := range l.sockets {
		one, err := s.Stats()
		if err != nil {
			return sum, err
		}
		sum.RxDropped += one.RxDropped
		sum.RxRingFull += one.RxRingFull
		sum.RxFillRingEmpty += one.RxFillRingEmpty
		sum.RxInvalidDescs += one.RxInvalidDescs
		sum.TxInvalidDescs += one.TxInvalidDescs
		sum.TxRingEmpty += one.TxRingEmpty
		sum.Malformed += one.Malformed
	}
	return sum, nil
}

// Close implements Link.
func (l *XDP) Close() (err error) {
	for _, s := range l.sockets {
		err = errors.Join(err, s.Close())
	}
	return err
}
