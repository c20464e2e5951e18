// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Command is a command of the protocol, with the types of its request and its grant. It is a command of a session, which
// package provider declares, or one whose messages only the service has. To add one, write the functions that visit its
// two structures and its line, in the file of its noun.
type Command[Q, G any] struct{ *Untyped }

// Untyped is a command without its types, for code that passes commands on.
type Untyped struct {
	provider.Code
	OfSession            bool       // package provider declares it, with the same types
	newRequest, newGrant func() any // addresses
	request, grant       func(*coder, any)
}

// all are the commands, in the order of their numbers.
var all []*Untyped

// None is a request or a grant without fields.
type None = provider.None

func none(*coder, *None) {}

// of describes a command of a session.
func of[Q, G any](c provider.Command[Q, G], request func(*coder, *Q), grant func(*coder, *G)) Command[Q, G] {
	u := &Untyped{
		Code: c.Code, OfSession: true, newRequest: func() any { return new(Q) }, newGrant: func() any { return new(G) },
		request: func(c *coder, r any) { request(c, r.(*Q)) }, grant: func(c *coder, g any) { grant(c, g.(*G)) },
	}
	all = append(all, u)
	slices.SortFunc(all, func(a, b *Untyped) int { return int(a.Number) - int(b.Number) })
	return Command[Q, G]{u}
}

// command describes a command that a session does not have, or has with another request.
func command[Q, G any](number uint16, name string, request func(*coder, *Q), grant func(*coder, *G)) Command[Q, G] {
	c := of(provider.Command[Q, G]{Code: provider.Code{Number: number, Name: name}}, request, grant)
	c.OfSession = false
	return c
}

// All returns the commands, in the order of their numbers.
func All() []*Untyped { return slices.Clone(all) }

// ByNumber returns the command with a number.
func ByNumber(number uint16) (command *Untyped, found bool) {
	i, found := slices.BinarySearchFunc(all, number, func(u *Untyped, n uint16) int { return int(u.Number) - int(n) })
	if !found {
		return nil, false
	}
	return all[i], true
}

// NewGrant returns the address of an empty grant.
func (u *Untyped) NewGrant() any { return u.newGrant() }

// EncodeRequest encodes the request at address r as a packet. A text that is too long is verbs.ErrInvalid.
func (u *Untyped) EncodeRequest(id uint32, r any) ([]byte, error) {
	m := Message{Code: u.Number, Kind: Request, ID: id}
	packet, err := m.encode(nil, func(c *coder) { u.request(c, r) })
	if err != nil {
		err = &remoteError{u.Name + ": " + err.Error(), []error{verbs.ErrInvalid}}
	}
	return packet, err
}

// DecodeRequest parses the body of a request, and returns the address of the request.
func (u *Untyped) DecodeRequest(body []byte) (any, error) {
	r := u.newRequest()
	return r, decode(body, nil, func(c *coder) { u.request(c, r) })
}

// EncodeGrant encodes the reply to a request as a packet. g is the address of the grant.
func (u *Untyped) EncodeGrant(id uint32, g any, memory Memory) ([]byte, error) {
	m := Message{Code: u.Number, Kind: Reply, ID: id}
	return m.encode(memory, func(c *coder) { u.grant(c, g) })
}

// DecodeGrant parses the body of a reply into the grant at address g.
func (u *Untyped) DecodeGrant(body []byte, memory Memory, g any) error {
	return decode(body, memory, func(c *coder) { u.grant(c, g) })
}

// DecodeRequest parses the body of a request.
func (c Command[Q, G]) DecodeRequest(body []byte) (Q, error) {
	r, err := c.Untyped.DecodeRequest(body)
	return *r.(*Q), err
}

// DecodeGrant parses the body of a reply.
func (c Command[Q, G]) DecodeGrant(body []byte, memory Memory) (g G, err error) {
	err = c.Untyped.DecodeGrant(body, memory, &g)
	return g, err
}

// fieldsOf lists the fields that visit visits, for the C header.
func fieldsOf(visit func(*coder, any), structure any) []field {
	c := &coder{direction: describing}
	visit(c, structure)
	return c.fields
}
