package proto

import (
	"slices"

	"github.com/roced/roced/verbs"
)

// Command is a command of the protocol, with the types of its request and its grant. To add one: the
// functions that visit its two structures, in the file of its noun, and its line there; then a line
// in verbs/server and one in verbs/client.
type Command[Q, G any] struct {
	Code    uint16
	Name    string // in the C header
	request func(*coder, *Q)
	grant   func(*coder, *G)
}

// description is a command for the C header.
type description struct {
	name           string
	code           uint16
	request, grant []field
}

// all are the commands, in the order of their codes.
var all []description

// None is a request or a grant without fields.
type None struct{}

func none(*coder, *None) {}

func command[Q, G any](code uint16, name string, request func(*coder, *Q), grant func(*coder, *G)) Command[Q, G] {
	d := description{name: name, code: code, request: fieldsOf(request), grant: fieldsOf(grant)}
	all = append(all, d)
	slices.SortFunc(all, func(a, b description) int { return int(a.code) - int(b.code) })
	return Command[Q, G]{code, name, request, grant}
}

func fieldsOf[T any](visit func(*coder, *T)) []field {
	c := &coder{direction: describing}
	visit(c, new(T))
	return c.fields
}

// EncodeRequest makes the packet of a request; verbs.ErrInvalid if a text in it is too long.
func (d Command[Q, G]) EncodeRequest(id uint32, r *Q) ([]byte, error) {
	m := Message{Code: d.Code, Kind: Request, ID: id}
	packet, err := m.encode(nil, func(c *coder) { d.request(c, r) })
	if err != nil {
		err = &remoteError{d.Name + ": " + err.Error(), []error{verbs.ErrInvalid}}
	}
	return packet, err
}

// DecodeRequest parses the body of a request.
func (d Command[Q, G]) DecodeRequest(body []byte) (r Q, err error) {
	err = decode(body, nil, func(c *coder) { d.request(c, &r) })
	return r, err
}

// EncodeGrant makes the packet of the reply to a request.
func (d Command[Q, G]) EncodeGrant(id uint32, g *G, memory Memory) ([]byte, error) {
	m := Message{Code: d.Code, Kind: Reply, ID: id}
	return m.encode(memory, func(c *coder) { d.grant(c, g) })
}

// DecodeGrant parses the body of a reply.
func (d Command[Q, G]) DecodeGrant(body []byte, memory Memory) (g G, err error) {
	err = decode(body, memory, func(c *coder) { d.grant(c, &g) })
	return g, err
}
