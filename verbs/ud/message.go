package ud

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// Message is a datagram. One to be sent needs To and Data, and Imm if it is to carry
// immediate data; one that came has all, and its buffer is lent until Release.
type Message struct {
	// Data is the payload. Of a message that came it lies in the card's memory: it is valid until
	// Release, or until the endpoint is closed.
	Data []byte
	From Addr // who sent it, ready to be answered; ignored when sending
	// To is where it goes; of one that came the own address or the group that it was sent to.
	// The zero Addr stands for the peer of Dial.
	To     Addr
	Imm    uint32 // with HasImm: 32 bits that travel beside the payload
	HasImm bool

	endpoint *Endpoint // that lends the buffer; nil of a message of the program's own
	slot     uint32
	life     uint32 // of the slot: a message that was released is known by an older one
}

// Release gives a message's buffer back to be received into, once; again does nothing. See
// Endpoint.Release for many.
func (m *Message) Release() {
	if m.endpoint != nil {
		m.endpoint.release(m)
	}
}

// Reply sends data to who sent the message, from the address that it was sent to; the message must
// not have been released. It waits for room if need be, but never for the sender's
// hardware address: if that is not known, the card looks for it and sends then.
func (m *Message) Reply(ctx context.Context, data []byte) error {
	if !m.isLent() {
		return fmt.Errorf("reply: %w: the message has been released, or never came", verbs.ErrInvalid)
	}
	answer := [1]Message{*m}
	answer[0].To, answer[0].Data, answer[0].HasImm = m.From, data, false
	_, err := m.endpoint.SendBatch(ctx, answer[:])
	return err
}

// isLent reports whether the message has a buffer, that it came in.
func (m *Message) isLent() bool {
	if m.endpoint == nil {
		return false
	}
	r := &m.endpoint.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives[m.slot] == m.life
}

// answers reports whether the message came to this endpoint, and is to be sent back to its sender.
func (m *Message) answers(e *Endpoint) bool {
	return m.endpoint == e && m.To == m.From && m.isLent()
}

// grh is the header that the message came with.
func (m *Message) grh() verbs.GRH {
	return verbs.GRH(m.endpoint.recvSlot(m.slot)[:grhLen])
}
