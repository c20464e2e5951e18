package rc

// Message is a message. To be sent it needs Data, and Imm with HasImm for immediate data. The buffer of a
// received one is lent until Release.
type Message struct {
	// Data is the payload. In a received message it is valid until Release, or until the connection is closed.
	Data   []byte
	Imm    uint32 // immediate data, valid with HasImm
	HasImm bool
	// Written says that the peer has written to a region, with immediate data that tell of it: so many bytes in
	// Length. There is no Data then.
	Written bool
	Length  int // bytes of a received message, or of what was written

	pool *pool // that lends the buffer; nil if the program made the message
	slot uint32
	life uint32 // counts the slot's loans; an older value means that the message was released
}

// Release returns a message's buffer, for a new message. Releasing again does nothing. Conn.Release does so
// for many.
func (m *Message) Release() {
	if m == nil || m.pool == nil {
		return
	}
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeBack(m)
}
