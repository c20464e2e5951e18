package rc

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Message is a message. To be sent it needs Data, and Imm with HasImm for immediate data. The buffer of a
// received one is lent until Release.
type Message struct {
	// Data is the payload. In a received message it is valid until Release, or until the connection is closed.
	Data   []byte
	Imm    uint32 // immediate data, valid with HasImm
	HasImm bool
	// Written means that the peer has written Length bytes to a region, with immediate data. There is no Data then.
	Written bool
	Length  int // bytes of a received message, or bytes written

	buffers *transport.Receives // that lend the buffer; nil if the program made the message
	loan    transport.Loan
}

// receive makes the message of a completion. It assigns field by field: a composite literal would be built on the
// stack and copied.
func (m *Message) receive(buffers *transport.Receives, wc *verbs.WC, loan transport.Loan) {
	m.Imm, m.HasImm, m.Length = wc.ImmData, wc.Flags&verbs.WCWithImm != 0, int(wc.ByteLen)
	if m.Written = wc.Opcode == verbs.WCRecvRDMAWithImm; m.Written {
		m.Data = nil
	} else {
		m.Data = buffers.Data(loan, wc.ByteLen)
	}
	m.buffers, m.loan = buffers, loan
}

// Release returns a message's buffer, for a new message. Releasing again does nothing. Conn.Release does so
// for many.
func (m *Message) Release() {
	if m == nil || m.buffers == nil {
		return
	}
	b := m.buffers
	b.Return(1, func(int) transport.Loan { return m.takeLoan(b) })
}

// takeLoan ends the message's loan, and returns it if it is one of buffers.
func (m *Message) takeLoan(buffers *transport.Receives) (loan transport.Loan) {
	if m.buffers == buffers {
		loan = m.loan
		m.Data, m.buffers = nil, nil
	}
	return loan
}
