// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
)

// Mixed traffic: many queue pairs with different message lengths, several destinations, and bursts of random length.
// Messages of one queue pair must arrive in order, and lost ones must be counted.

const (
	mixedQPs   = 16
	mixedSlots = 128  // outstanding sends of a queue pair, one slot of memory each
	mixedSize  = 1024 // maximum message length in bytes
	mixedBurst = 64   // maximum messages per burst
)

// mixedAddresses contains the receiver's addresses. The host always has the first one.
var mixedAddresses = []string{"10.77.0.2", "10.77.0.3", "10.77.0.4"}

// mixedLength returns the length of most messages of a queue pair.
func mixedLength(qp int) int { return 64 + (mixedSize-64)*qp/(mixedQPs-1) }

// stamp is the header of a mixed message. A sending queue pair numbers its messages to all destinations together.
type stamp struct {
	qp, length int
	number     uint64 // from 1
}

const stampLen = 16

func (s stamp) put(message []byte) {
	binary.LittleEndian.PutUint32(message[0:], uint32(s.qp))
	binary.LittleEndian.PutUint32(message[4:], uint32(s.length))
	binary.LittleEndian.PutUint64(message[8:], s.number)
}

func stampOf(message []byte) stamp {
	return stamp{
		qp:     int(binary.LittleEndian.Uint32(message[0:])),
		length: int(binary.LittleEndian.Uint32(message[4:])),
		number: binary.LittleEndian.Uint64(message[8:]),
	}
}

// sequences contains the last number received from each sending queue pair.
type sequences struct{ last [mixedQPs]uint64 }

// check returns an error unless a message is complete and newer than the earlier ones of its queue pair.
func (s *sequences) check(message []byte) error {
	if len(message) < stampLen {
		return fmt.Errorf("got a message of %d bytes, want at least %d", len(message), stampLen)
	}
	m := stampOf(message)
	if m.qp >= mixedQPs || m.length != len(message) {
		return fmt.Errorf("message from queue pair %[2]d: got %[1]d bytes, header has %[3]d", len(message), m.qp, m.length)
	}
	if m.number <= s.last[m.qp] {
		return fmt.Errorf("order violated: queue pair %d, message %d came after %d", m.qp, m.number, s.last[m.qp])
	}
	s.last[m.qp] = m.number
	return nil
}

// mixed measures mixed traffic in each requested send mode.
func (b *bench) mixed() error {
	for _, address := range mixedAddresses[1:] {
		if err := b.b.AddAddress(linkName, address+"/24"); err != nil {
			return err
		}
	}
	var sent, lost uint64
	for _, send := range strings.Split(b.sends, ",") {
		err := b.InTurns("mixed", 0, send, []string{"inline", "worker"}, func(variant string) (float64, error) {
			rate, s, l, err := b.mixedOnce(harness.Job{Variant: variant, Size: mixedSize, Send: hca.SendMode(send)})
			sent, lost = sent+s, lost+l
			return rate, err
		})
		if err != nil {
			return err
		}
	}
	b.Add(harness.Record{Name: "mixed, lost", Variant: "all", Sent: sent, Lost: lost})
	return nil
}

// mixedOnce measures mixed traffic once. It returns an error if a message was neither delivered nor counted as lost.
func (b *bench) mixedOnce(j harness.Job) (rate float64, sent, lost uint64, err error) {
	before, err := b.linkDrops()
	if err != nil {
		return 0, 0, 0, err
	}
	receiver, sender := j, j
	receiver.Role, sender.Role = "receive mixed", "send mixed"
	s, r, err := b.pair(receiver, sender)
	if err != nil {
		return 0, 0, 0, err
	}
	after, err := b.linkDrops()
	if err != nil {
		return 0, 0, 0, err
	}
	lost = s.Messages - r.Messages
	// The link's counter includes packets that the interface refused.
	counted := s.Losses + r.Losses + max(after-before, s.Refused) - s.Refused
	if s.Messages < r.Messages || lost > counted {
		return 0, 0, 0, fmt.Errorf("sent %d, delivered %d, counted as dropped %d: %d were not counted", s.Messages, r.Messages, counted, lost-counted)
	}
	return r.PerSecond, s.Messages, lost, nil
}

// linkDrops returns the packets that the sending host's link has dropped.
func (b *bench) linkDrops() (uint64, error) {
	l, err := b.a.Netlink().LinkByName(linkName)
	if err != nil {
		return 0, err
	}
	s := l.Attrs().Statistics
	return s.TxDropped + s.TxErrors, nil
}
