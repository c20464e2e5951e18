//go:build linux

package hca

import (
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
)

// CaptureFilter says which packets a capture has. Its zero value is for all.
type CaptureFilter struct {
	QPN   wire.QPN // that sends or receives; 0: any
	Group wire.GID // to which they go; zero: any
	Snap  int      // bytes of each frame that are kept; 0: all
}

// CapturedPacket is a packet, and what became of it.
type CapturedPacket = datapath.Tapped

// Capture is copies of a card's packets: of those that XDP redirects to it, and of those that it sends.
type Capture struct {
	card *Card
	tap  *datapath.Tap
}

// Capture begins a capture; ErrClosed or ErrDeviceFatal if the card has ended. Close ends it. Packets
// that are not read in time are lost, and counted; the card does not wait.
func (card *Card) Capture(f CaptureFilter) (*Capture, error) {
	if err := card.session.enter(); err != nil {
		return nil, err
	}
	defer card.session.leave()
	c := &Capture{card, datapath.NewTap(datapath.TapFilter(f))}
	card.engine.Do(func() { card.engine.AddTap(c.tap) })
	return c, nil
}

// Packets are those that the capture has.
func (c *Capture) Packets() <-chan CapturedPacket { return c.tap.Packets() }

// Lost is how many packets were lost since the last call, since there was no room.
func (c *Capture) Lost() uint64 { return c.tap.Lost() }

// Done is closed when the card has ended: no packets come any more.
func (c *Capture) Done() <-chan struct{} { return c.card.Done() }

// Close ends the capture.
func (c *Capture) Close() {
	c.card.engine.Do(func() { c.card.engine.RemoveTap(c.tap) })
}
