// SPDX-License-Identifier: Apache-2.0

package provider

import "context"

// Table maps the number of a command to the function that executes it for a session of type S.
type Table[S any] map[uint16]func(ctx context.Context, session S, request, grant any) error

// Handler is a command with its function. Waits, Grants, Gives and Does make it from functions of four signatures.
type Handler[S any] struct {
	number uint16
	run    func(ctx context.Context, session S, request, grant any) error
}

// TableOf returns the Table of handlers.
func TableOf[S any](handlers ...Handler[S]) Table[S] {
	t := Table[S]{}
	for _, h := range handlers {
		t[h.number] = h.run
	}
	return t
}

// Of returns the handlers of a part of a session as handlers of the session.
func Of[S, Part any](part func(S) Part, handlers ...Handler[Part]) (all []Handler[S]) {
	for _, h := range handlers {
		all = append(all, Handler[S]{h.number, func(ctx context.Context, session S, request, grant any) error {
			return h.run(ctx, part(session), request, grant)
		}})
	}
	return all
}

// Waits returns the handler of a command that may wait.
func Waits[S, Request, Grant any](c Command[Request, Grant], do func(S, context.Context, Request) (Grant, error)) Handler[S] {
	return Handler[S]{c.Number, func(ctx context.Context, session S, request, grant any) (err error) {
		*grant.(*Grant), err = do(session, ctx, *request.(*Request))
		return err
	}}
}

// Grants returns the handler of a command with a request and a grant.
func Grants[S, Request, Grant any](c Command[Request, Grant], do func(S, Request) (Grant, error)) Handler[S] {
	return Waits(c, func(session S, _ context.Context, request Request) (Grant, error) { return do(session, request) })
}

// Gives returns the handler of a command without a request.
func Gives[S, Grant any](c Command[None, Grant], do func(S) (Grant, error)) Handler[S] {
	return Grants(c, func(session S, _ None) (Grant, error) { return do(session) })
}

// Does returns the handler of a command without a grant.
func Does[S, Request any](c Command[Request, None], do func(S, Request) error) Handler[S] {
	return Grants(c, func(session S, request Request) (None, error) { return None{}, do(session, request) })
}
