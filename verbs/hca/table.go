package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// table gives objects their handles: small numbers, from 1 on, that are used again.
type table[T any] struct {
	noun    string
	limit   int
	objects []*T // by handle less one
	free    []verbs.Handle
}

func (t *table[T]) add(object *T) (verbs.Handle, error) {
	if n := len(t.free); n > 0 {
		handle := t.free[n-1]
		t.free = t.free[:n-1]
		t.objects[handle-1] = object
		return handle, nil
	}
	if len(t.objects) == t.limit {
		return 0, fmt.Errorf("%w: %d %ss are open; close some", verbs.ErrLimit, t.limit, t.noun)
	}
	t.objects = append(t.objects, object)
	return verbs.Handle(len(t.objects)), nil
}

func (t *table[T]) get(handle verbs.Handle) (*T, error) {
	if handle == 0 || int(handle) > len(t.objects) || t.objects[handle-1] == nil {
		return nil, fmt.Errorf("%w: no such %s; it may be closed already", verbs.ErrInvalid, t.noun)
	}
	return t.objects[handle-1], nil
}

func (t *table[T]) remove(handle verbs.Handle) {
	t.objects[handle-1] = nil
	t.free = append(t.free, handle)
}
