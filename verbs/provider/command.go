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
	Frees  bool   // it frees an object: over the service it succeeds once the connection has ended, which has freed all
}

// Command is a command of a session, with the types of its request and its grant. A new one has three places: here its line
// (commands.go) and its two types; in verbs/proto the fields of both; in verbs/hca/commands.go the function that carries it
// out.
type Command[Request, Grant any] struct {
	Code
	calls *sync.Pool // of *call[Request, Grant]. So a command does not allocate: some are on the path of programs that wait
}

// call is what a Doer reads and writes.
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
	// Do carries out the command that code names. Request and grant are pointers to the command's two types, of which the
	// Doer keeps neither. The error is ErrUnsupported if it does not have the command. Callers use the functions Do and
	// Exec.
	Do(ctx context.Context, code Code, request, grant any) error
}

// Do has d carry out a command, and returns its grant.
func Do[Request, Grant any](d Doer, c Command[Request, Grant], request Request) (Grant, error) {
	return DoContext(context.Background(), d, c, request)
}

// DoContext is Do for a command that waits. If ctx ends the wait, the error wraps the error of ctx.
func DoContext[Request, Grant any](ctx context.Context, d Doer, c Command[Request, Grant], request Request) (grant Grant, err error) {
	one := c.calls.Get().(*call[Request, Grant])
	one.request = request
	err = d.Do(ctx, c.Code, &one.request, &one.grant)
	grant = one.grant
	*one = call[Request, Grant]{} // it keeps no memory of queues
	c.calls.Put(one)
	return grant, err
}

// Exec has d carry out a command without a grant.
func Exec[Request any](d Doer, c Command[Request, None], request Request) error {
	return ExecContext(context.Background(), d, c, request)
}

// ExecContext is Exec for a command that waits.
func ExecContext[Request any](ctx context.Context, d Doer, c Command[Request, None], request Request) error {
	_, err := DoContext(ctx, d, c, request)
	return err
}
