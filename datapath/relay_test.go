// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/wire"
)

// TestRelay: the first link sends another link's frames, in order. A full inbox accepts no more frames. If the first
// link is down, the frames are counted as dropped.
func TestRelay(t *testing.T) {
	network := link.NewNetwork(0)
	c := newCrew(t, network, 1, 2, straight)
	far := network.Port(wire.MAC{2, 0, 0, 0, 0, 2})
	defer far.Close()
	relay, frame := c.Relay(), make([]byte, 100)
	copy(frame, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1})
	sent, arrived := 0, 0
	put := func() bool {
		frame[50], frame[51] = byte(sent>>8), byte(sent)
		taken := relay(frame)
		if taken {
			sent++
		}
		return taken
	}
	for range 3 {
		for put() { // until the inbox is full
		}
		if given, done := c.Relayed(); given-done != peers.Room {
			t.Errorf("%d frames wait", given-done)
		}
		roundsUntil(t, func() bool {
			for range far.Receive() {
				if got := far.Next(); len(got) != len(frame) || !bytes.Equal(got[50:52], []byte{byte(arrived >> 8), byte(arrived)}) {
					t.Fatalf("frame %d is % x", arrived, got)
				}
				arrived++
			}
			far.Release()
			return arrived == sent
		}, c)
	}
	c.Do(func() { c.SetLink(false) })
	for range 5 {
		put()
	}
	roundsUntil(t, func() bool { given, done := c.Relayed(); return given == done }, c)
	if n := c.Counters().Drops[DropLinkDown]; n != 5 {
		t.Errorf("%d of 5 frames counted as dropped", n)
	}
}
