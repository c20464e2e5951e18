// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Message is a message to send or a received message. To send immediate data, set Imm and HasImm. The buffer of a
// received message belongs to the program until Release.
type Message struct {
	// Data is the payload. In a received message it is valid until Release, or until the connection is closed.
	Data   []byte
	Imm    uint32 // immediate data, valid with HasImm
	HasImm bool
	// Written is true if the message reports a write of the peer with immediate data: the peer has written Length bytes
	// to a region, and Data is nil.
	Written bool
	Length  int // length of a received message, or number of bytes written

	buffers *transport.Receives // the owner of the buffer; nil if the program created the message
	loan    transport.Loan
}

// receive fills the message from a completion. It assigns field by field, because a composite literal would be built on
// the stack and copied.
func (m *Message) receive(buffers *transport.Receives, wc *verbs.WC, loan transport.Loan) {
	m.Imm, m.HasImm, m.Length = wc.ImmData, wc.Flags&verbs.WCWithImm != 0, int(wc.ByteLen)
	if m.Written = wc.Opcode == verbs.WCRecvRDMAWithImm; m.Written {
		m.Data = nil
	} else {
		m.Data = buffers.Data(loan, wc.ByteLen)
	}
	m.buffers, m.loan = buffers, loan
}

// Release returns a message's buffer to its connection or domain. Releasing again has no effect. Conn.Release releases
// many messages.
func (m *Message) Release() {
	if m == nil || m.buffers == nil {
		return
	}
	b := m.buffers
	b.Return(1, func(int) transport.Loan { return m.takeLoan(b) })
}

// takeLoan ends the message's loan and returns it, if the loan belongs to buffers; otherwise it returns the zero Loan.
func (m *Message) takeLoan(buffers *transport.Receives) (loan transport.Loan) {
	if m.buffers == buffers {
		loan = m.loan
		m.Data, m.buffers = nil, nil
	}
	return loan
}
