// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Message is a datagram. To send it, set To and Data, and for immediate data Imm and HasImm. A received message has all
// fields set, and its buffer is lent until Release.
type Message struct {
	// Data is the payload. In a received message it is valid until Release or until the endpoint is closed.
	Data []byte
	From Addr // the sender of a received message; ignored when sending
	// To is the destination. In a received message it is this endpoint's address, or the group. The zero Addr means the
	// peer of Dial.
	To     Addr
	Imm    uint32 // immediate data, valid with HasImm
	HasImm bool

	endpoint *Endpoint // the endpoint that lends the buffer; nil if the program created the message
	loan     transport.Loan
}

// Release returns a message's buffer to the endpoint. Releasing again has no effect. Endpoint.Release releases many
// messages.
func (m *Message) Release() {
	if e := m.endpoint; e != nil {
		e.receives.Return(1, func(int) transport.Loan { return m.takeLoan(e) })
	}
}

// takeLoan ends the message's loan, and returns it if the endpoint has lent the message.
func (m *Message) takeLoan(e *Endpoint) (loan transport.Loan) {
	if m.endpoint == e {
		loan = m.loan
		m.Data, m.endpoint = nil, nil
	}
	return loan
}

// Reply sends data to the message's sender, from the address that the message was sent to. The message must not have
// been released. Reply may wait for a free buffer, but never for the sender's hardware address: if necessary, the card
// resolves it and sends afterwards.
func (m *Message) Reply(ctx context.Context, data []byte) error {
	if !m.isLent() {
		return fmt.Errorf("reply: %w: the message has been released, or was not received", verbs.ErrInvalid)
	}
	answer := [1]Message{*m}
	answer[0].To, answer[0].Data, answer[0].HasImm = m.From, data, false
	_, err := m.endpoint.send(ctx, answer[:], true)
	return err
}

// isLent reports whether the message was received and has not been released.
func (m *Message) isLent() bool { return m.endpoint != nil && m.endpoint.receives.IsLent(m.loan) }

// isReply reports whether this endpoint received the message, and it is to be sent to its sender.
func (m *Message) isReply(e *Endpoint) bool { return m.endpoint == e && m.To == m.From && m.isLent() }
