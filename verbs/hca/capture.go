// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
)

// CaptureFilter selects the packets of a capture. Its zero value selects all packets.
type CaptureFilter struct {
	QPN   wire.QPN // source or destination QP number; 0: any
	Group wire.GID // destination group; zero: any
	Snap  int      // number of bytes kept of each frame; 0: all
}

// CapturedPacket is a packet, with its fate.
type CapturedPacket = datapath.Tapped

// Capture receives copies of a card's packets: those that XDP redirects to it, and those that it sends.
type Capture struct {
	card *Card
	tap  *datapath.Tap
}

// Capture starts a capture, until its Close. It returns ErrClosed or ErrDeviceFatal if the card has ended. Packets that
// the caller does not read in time are lost and counted; the card does not wait.
func (card *Card) Capture(f CaptureFilter) (*Capture, error) {
	if err := card.session.enter(); err != nil {
		return nil, err
	}
	defer card.session.leave()
	c := &Capture{card, datapath.NewTap(datapath.TapFilter(f))}
	card.engine.Do(func() { card.engine.AddTap(c.tap) })
	return c, nil
}

// Packets returns the channel of captured packets.
func (c *Capture) Packets() <-chan CapturedPacket { return c.tap.Packets() }

// Lost returns the number of packets lost since the last call because the channel was full.
func (c *Capture) Lost() uint64 { return c.tap.Lost() }

// Done returns a channel that is closed when the card has ended. No more packets are captured then.
func (c *Capture) Done() <-chan struct{} { return c.card.Done() }

// Close ends the capture.
func (c *Capture) Close() {
	c.card.engine.Do(func() { c.card.engine.RemoveTap(c.tap) })
}
