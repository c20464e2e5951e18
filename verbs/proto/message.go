// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"errors"
	"fmt"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// MaxMessage is the maximum length of a message in bytes.
const MaxMessage = 16 << 10

// ErrMalformed means that a message violates the protocol. The connection must be closed.
var ErrMalformed = errno.New("malformed message", unix.EPROTO)

// Kind is the kind of a message.
type Kind uint16

// The kinds. Request and Cancel are the client's, the others the service's.
const (
	Request Kind = 1 // a command, with its request
	Cancel  Kind = 2 // of the command with this id, which waits; the command still gets a reply
	Reply   Kind = 3 // to the request with this id: the grant
	Failure Kind = 4 // to the request with this id: the reason of the failure
	Ended   Kind = 5 // the session has ended; the same structure as Failure
)

// Message is a message with its structure still encoded.
type Message struct {
	Code uint16 // the command's, of Request, Reply and Failure
	Kind Kind
	ID   uint32 // chosen by the client for each request
	Body []byte
}

const headerLen = 8

func (m *Message) visit(c *coder) {
	u16(c, "command", &m.Code)
	u16(c, "kind", &m.Kind)
	u32(c, "id", &m.ID)
}

// Parse splits a packet. The body is a part of it.
func Parse(packet []byte) (m Message, err error) {
	c := coder{direction: decoding, buffer: packet}
	m.visit(&c)
	if m.Kind < Request || m.Kind > Ended {
		c.fail("kind %d", m.Kind)
	}
	m.Body = c.buffer
	return m, c.err
}

// encode encodes a packet: the header, and the fields that visit appends.
func (m *Message) encode(memory Memory, visit func(*coder)) ([]byte, error) {
	c := coder{direction: encoding, memory: memory, buffer: make([]byte, 0, 256)}
	m.visit(&c)
	visit(&c)
	if c.err == nil && len(c.buffer) > MaxMessage {
		c.fail("%d bytes, at most %d", len(c.buffer), MaxMessage)
	}
	return c.buffer, c.err
}

// decode parses a whole body.
func decode(body []byte, memory Memory, visit func(*coder)) error {
	c := coder{direction: decoding, buffer: body, memory: memory}
	visit(&c)
	if c.err == nil && len(c.buffer) != 0 {
		c.fail("%d bytes too many", len(c.buffer))
	}
	return c.err
}

// CancelReason is the reason why a waiting command is cancelled.
type CancelReason uint32

// The reasons.
const (
	Canceled         CancelReason = 1 // context.Canceled
	DeadlineExceeded CancelReason = 2
)

func (r *CancelReason) visit(c *coder) {
	u32(c, "reason", r)
	c.reserved(4)
	if c.direction == decoding && *r != Canceled && *r != DeadlineExceeded {
		c.fail("cancelled for reason %d", *r)
	}
}

// EncodeCancel encodes the packet that cancels a request.
func EncodeCancel(id uint32, reason CancelReason) []byte {
	m := Message{Kind: Cancel, ID: id}
	packet, _ := m.encode(nil, reason.visit) // cannot fail
	return packet
}

// DecodeCancel parses the body of a Cancel.
func DecodeCancel(body []byte) (reason CancelReason, err error) {
	err = decode(body, nil, reason.visit)
	return reason, err
}

// Of returns the memory at a place.
func (p Place) Of(memory []byte) ([]byte, error) {
	size := uint64(len(memory))
	if p.Offset > size || p.Length > size-p.Offset {
		return nil, fmt.Errorf("%w: %d bytes at offset %d of a memory of %d bytes", ErrMalformed, p.Length, p.Offset, size)
	}
	return memory[p.Offset:][:p.Length:p.Length], nil
}

// IsMalformed reports whether an error concerns a message's form.
func IsMalformed(err error) bool { return errors.Is(err, ErrMalformed) }
