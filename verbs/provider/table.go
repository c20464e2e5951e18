package provider

import "context"

// Table has the functions by which sessions of type S carry out commands, by the commands' numbers.
type Table[S any] map[uint16]func(ctx context.Context, session S, request, grant any) error

// Handler is a command with its function.
type Handler[S any] struct {
	number uint16
	run    func(ctx context.Context, session S, request, grant any) error
}

// TableOf makes a Table.
func TableOf[S any](handlers ...Handler[S]) Table[S] {
	t := Table[S]{}
	for _, h := range handlers {
		t[h.number] = h.run
	}
	return t
}

// Waits is a command that may wait.
func Waits[S, Request, Grant any](c Command[Request, Grant], do func(context.Context, S, Request) (Grant, error)) Handler[S] {
	return Handler[S]{c.Number, func(ctx context.Context, session S, request, grant any) (err error) {
		*grant.(*Grant), err = do(ctx, session, *request.(*Request))
		return err
	}}
}

// Grants is a command that grants something.
func Grants[S, Request, Grant any](c Command[Request, Grant], do func(S, Request) (Grant, error)) Handler[S] {
	return Waits(c, func(_ context.Context, session S, request Request) (Grant, error) { return do(session, request) })
}

// Gives is a command without a request.
func Gives[S, Grant any](c Command[None, Grant], do func(S) (Grant, error)) Handler[S] {
	return Grants(c, func(session S, _ None) (Grant, error) { return do(session) })
}

// Does is a command that grants nothing.
func Does[S, Request any](c Command[Request, None], do func(S, Request) error) Handler[S] {
	return Grants(c, func(session S, request Request) (None, error) { return None{}, do(session, request) })
}
