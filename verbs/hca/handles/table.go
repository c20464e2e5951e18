// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handles

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// Table maps handles to the objects of one kind of a session. A handle is a place in the table and the generation of the
// place's use, so the handle of a destroyed object does not name a later object. A place is reused only after all
// other places were used.
type Table[T any] struct {
	Noun  string     // name of the kind, for errors
	Limit int        // maximum number of objects, at most datapath.HandlePlaces
	Gone  error      // Get's error for an object that was destroyed; nil for verbs.ErrObjectClosed
	Kind  quota.Kind // the kind in the quota
	Quota *quota.Quota

	objects     []*T
	generations []uint32 // by place: of its object, or of its next one
	free        []uint32 // free places, least recently used first
}

// NewTable returns an empty table for objects of a kind, which count against the kind's limit and against the quota.
func NewTable[T any](noun string, kind quota.Kind, limits quota.Limits, q *quota.Quota) Table[T] {
	return Table[T]{Noun: noun, Limit: *kind.In(&limits), Kind: kind, Quota: q}
}

// ErrChannelGone is the error of commands on a channel that was destroyed: EBADF, as in libibverbs.
var ErrChannelGone = errno.Kin(verbs.ErrObjectClosed.Error(), unix.EBADF, verbs.ErrObjectClosed)

// Add returns a handle for an object. The error is verbs.ErrLimit if the session or its user has too many objects of
// the kind.
func (t *Table[T]) Add(object *T) (provider.Handle, error) {
	if err := t.Quota.Take(t.Kind, t.Noun); err != nil {
		return 0, err
	}
	place := uint32(len(t.objects))
	switch {
	case len(t.objects) < t.Limit:
		t.objects = append(t.objects, nil)
		t.generations = append(t.generations, 1)
	case len(t.free) > 0:
		place = t.free[0]
		t.free = t.free[1:]
	default:
		t.Quota.Give(t.Kind, 1)
		return 0, fmt.Errorf("%w: %d %ss are open; close some", verbs.ErrLimit, t.Limit, t.Noun)
	}
	t.objects[place] = object
	return t.handle(place), nil
}

// Get returns the object of a handle.
func (t *Table[T]) Get(handle provider.Handle) (*T, error) {
	place, generation := datapath.SplitHandle(uint32(handle))
	switch {
	case int(place) >= len(t.objects) || generation == 0:
		return nil, fmt.Errorf("%w: no such %s", verbs.ErrInvalid, t.Noun)
	case t.objects[place] == nil || t.generations[place] != generation:
		return nil, fmt.Errorf("%w: the %s", cmp.Or(t.Gone, verbs.ErrObjectClosed), t.Noun)
	}
	return t.objects[place], nil
}

// Remove frees the handle of an object that Get has just returned.
func (t *Table[T]) Remove(handle provider.Handle) {
	place, generation := datapath.SplitHandle(uint32(handle))
	t.objects[place] = nil
	t.generations[place] = max((generation+1)%datapath.HandleGenerations, 1)
	t.free = append(t.free, place)
	t.Quota.Give(t.Kind, 1)
}

// Close returns the objects' share of the quota, at the end of the session. The table is not used afterwards.
func (t *Table[T]) Close() { t.Quota.Give(t.Kind, t.Len()) }

// All returns the objects in the order of their places.
func (t *Table[T]) All() (list []*T) {
	for _, object := range t.objects {
		if object != nil {
			list = append(list, object)
		}
	}
	return list
}

// From iterates over the handles and objects from a place on.
func (t *Table[T]) From(place uint32) iter.Seq2[provider.Handle, *T] {
	return func(yield func(provider.Handle, *T) bool) {
		for ; int(place) < len(t.objects); place++ {
			if object := t.objects[place]; object != nil && !yield(t.handle(place), object) {
				return
			}
		}
	}
}

// Len returns the number of objects.
func (t *Table[T]) Len() int { return len(t.objects) - len(t.free) }

func (t *Table[T]) handle(place uint32) provider.Handle {
	return provider.Handle(datapath.HandleFor(place, t.generations[place]))
}

// Place returns the place of a handle in its table.
func Place(handle provider.Handle) uint32 {
	place, _ := datapath.SplitHandle(uint32(handle))
	return place
}

// Distinct returns the handle of an object as a number that differs from that of each object of the same kind in another
// session, if the sessions' own numbers, from 1 on, differ. It is 0 if there is no object.
func Distinct(session uint32, handle provider.Handle) provider.Handle {
	place, generation := datapath.SplitHandle(uint32(handle))
	if generation == 0 {
		return 0
	}
	return provider.Handle(datapath.HandleFor(place, session))
}
