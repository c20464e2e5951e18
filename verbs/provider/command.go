// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"sync"
)

// Code identifies a command.
type Code struct {
	Number uint16 // in messages to and from the service
	Name   string // in the C header
	Waits  bool   // may take long; its context cancels it
	Frees  bool   // frees an object: over the service it succeeds after the end of the connection, which has freed all objects
}

// Command is a command of a session, with the types of its request and its grant. To add a command, add its line here
// (commands.go) and its two types, the fields of both in verbs/proto, and the function that executes it in
// verbs/hca/commands.go.
type Command[Request, Grant any] struct {
	Code
	calls *sync.Pool // of *call[Request, Grant]: avoids allocation, since some commands are on the path of waiting programs
}

// call is the data that a Doer reads and writes.
type call[Request, Grant any] struct {
	request Request
	grant   Grant
}

// None is a request or a grant without fields.
type None struct{}

func newCommand[Request, Grant any](code Code) Command[Request, Grant] {
	return Command[Request, Grant]{code, &sync.Pool{New: func() any { return new(call[Request, Grant]) }}}
}

func command[Request, Grant any](number uint16, name string) Command[Request, Grant] {
	return newCommand[Request, Grant](Code{Number: number, Name: name})
}

func waiting[Request, Grant any](number uint16, name string) Command[Request, Grant] {
	return newCommand[Request, Grant](Code{Number: number, Name: name, Waits: true})
}

func freeing[Request any](number uint16, name string) Command[Request, None] {
	return newCommand[Request, None](Code{Number: number, Name: name, Frees: true})
}

// Doer executes commands: a Provider, or a device that executes queries without a session.
type Doer interface {
	// Do executes the command identified by code. Request and grant are pointers to the command's two types, which the
	// Doer must not retain. The error is ErrUnsupported for an unknown command. Callers use the functions Do and Exec.
	Do(ctx context.Context, code Code, request, grant any) error
}

// Do executes a command by d, and returns its grant.
func Do[Request, Grant any](d Doer, c Command[Request, Grant], request Request) (Grant, error) {
	return DoContext(context.Background(), d, c, request)
}

// DoContext is Do for a command that waits. If ctx ends the wait, the error wraps the error of ctx.
func DoContext[Request, Grant any](ctx context.Context, d Doer, c Command[Request, Grant], request Request) (grant Grant, err error) {
	one := c.calls.Get().(*call[Request, Grant])
	one.request = request
	err = d.Do(ctx, c.Code, &one.request, &one.grant)
	grant = one.grant
	*one = call[Request, Grant]{} // do not retain memory of queues
	c.calls.Put(one)
	return grant, err
}

// Exec executes a command without a grant by d.
func Exec[Request any](d Doer, c Command[Request, None], request Request) error {
	return ExecContext(context.Background(), d, c, request)
}

// ExecContext is Exec for a command that waits.
func ExecContext[Request any](ctx context.Context, d Doer, c Command[Request, None], request Request) error {
	_, err := DoContext(ctx, d, c, request)
	return err
}
