package ud

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// Message is a datagram. To be sent it needs To and Data, and Imm with HasImm for immediate data. A
// received one has all fields set, and its buffer is lent until Release.
type Message struct {
	// Data is the payload. In a received message it is valid until Release or until the endpoint is
	// closed.
	Data []byte
	From Addr // the sender of a received message; ignored when sending
	// To is where the message goes. In a received one it is this endpoint's address, or the group.
	// The zero Addr stands for the peer of Dial.
	To     Addr
	Imm    uint32 // immediate data, valid with HasImm
	HasImm bool

	endpoint *Endpoint // the one that lends the buffer; nil if the program made the message
	slot     uint32
	life     uint32 // counts the slot's loans; an older value means that the message was released
}

// Release returns a message's buffer, for a new message. Releasing again does nothing.
// Endpoint.Release does so for many.
func (m *Message) Release() {
	if m.endpoint != nil {
		m.endpoint.release(m)
	}
}

// Reply sends data to the message's sender, from the address that the message was sent to. The
// message must not have been released. Reply may wait for room, but never for the sender's hardware
// address: if that is not known, the card asks for it and sends afterwards.
func (m *Message) Reply(ctx context.Context, data []byte) error {
	if !m.isLent() {
		return fmt.Errorf("reply: %w: the message has been released, or was not received", verbs.ErrInvalid)
	}
	answer := [1]Message{*m}
	answer[0].To, answer[0].Data, answer[0].HasImm = m.From, data, false
	_, err := m.endpoint.SendBatch(ctx, answer[:])
	return err
}

// isLent reports whether the message was received and has not been released.
func (m *Message) isLent() bool {
	if m.endpoint == nil {
		return false
	}
	r := &m.endpoint.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lives[m.slot] == m.life
}

// answers reports whether this endpoint received the message, and it is to be sent to its sender.
func (m *Message) answers(e *Endpoint) bool {
	return m.endpoint == e && m.To == m.From && m.isLent()
}

// grh is the header that the message came with.
func (m *Message) grh() verbs.GRH {
	return verbs.GRH(m.endpoint.recv.slot(m.slot)[:grhLen])
}
