package provider

import (
	"context"
	"sync"
)

// Code names a command.
type Code struct {
	Number uint16 // in messages to and from the service
	Name   string // in the C header
	Waits  bool   // it may take long, and its context cancels it
	Frees  bool   // it frees something: over the service it succeeds once the connection has ended, which has freed all
}

// Command is a command of a session, with the types of its request and its grant. To add one: its line (commands.go) and
// its two types here; the fields of both in verbs/proto; the function that carries it out in verbs/hca/commands.go.
type Command[Request, Grant any] struct {
	Code
	calls *sync.Pool // of *call[Request, Grant]: a command allocates nothing, since programs that wait give some
}

// call is the argument of a Doer.
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

// Doer carries out commands: a Provider, or a device that answers queries without a session.
type Doer interface {
	// Do carries out the command that code names. Request and grant are pointers to the command's two types; see the
	// functions Do and Exec. The Doer keeps neither. ErrUnsupported for a command that it does not have.
	Do(ctx context.Context, code Code, request, grant any) error
}

// Do has a session carry out a command, and returns its grant.
func Do[Request, Grant any](d Doer, c Command[Request, Grant], request Request) (Grant, error) {
	return DoContext(context.Background(), d, c, request)
}

// DoContext is Do for a command that waits. If ctx ends the wait, the error wraps that of ctx.
func DoContext[Request, Grant any](ctx context.Context, d Doer, c Command[Request, Grant], request Request) (grant Grant, err error) {
	one := c.calls.Get().(*call[Request, Grant])
	one.request = request
	err = d.Do(ctx, c.Code, &one.request, &one.grant)
	grant = one.grant
	*one = call[Request, Grant]{} // it keeps no memory of queues
	c.calls.Put(one)
	return grant, err
}

// Exec has a session carry out a command that grants nothing.
func Exec[Request any](d Doer, c Command[Request, None], request Request) error {
	return ExecContext(context.Background(), d, c, request)
}

// ExecContext is Exec for a command that waits.
func ExecContext[Request any](ctx context.Context, d Doer, c Command[Request, None], request Request) error {
	_, err := DoContext(ctx, d, c, request)
	return err
}
