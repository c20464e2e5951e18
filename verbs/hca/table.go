//go:build linux

package hca

import (
	"cmp"
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// table gives objects their handles. A handle is a place in the table and the generation of the
// place's use, so that the handle of a closed object names no later one. All places are used before
// one is used again.
type table[T any] struct {
	noun        string
	limit       int // at most datapath.HandlePlaces
	quota       *quota.Quota
	kind        quota.Kind // of the quota
	gone        error      // of an object that was closed; nil for verbs.ErrObjectClosed
	objects     []*T
	generations []uint32 // by place: of its object, or of its next one
	free        []uint32 // places; the one that has been free for longest comes first
}

func newTable[T any](noun string, c *SessionConfig, of quota.Kind) table[T] {
	return table[T]{noun: noun, limit: *of.In(&c.Limits), quota: c.Quota, kind: of}
}

// errChannelGone is what commands on a channel that was destroyed give: its descriptor is bad, as libibverbs says.
var errChannelGone = errno.Kin(verbs.ErrObjectClosed.Error(), unix.EBADF, verbs.ErrObjectClosed)

func (t *table[T]) add(object *T) (provider.Handle, error) {
	if err := t.quota.Take(t.kind, t.noun); err != nil {
		return 0, err
	}
	place := uint32(len(t.objects))
	switch {
	case len(t.objects) < t.limit:
		t.objects = append(t.objects, nil)
		t.generations = append(t.generations, 1)
	case len(t.free) > 0:
		place = t.free[0]
		t.free = t.free[1:]
	default:
		t.quota.Give(t.kind, 1)
		return 0, fmt.Errorf("%w: %d %ss are open; close some", verbs.ErrLimit, t.limit, t.noun)
	}
	t.objects[place] = object
	return provider.Handle(datapath.HandleFor(place, t.generations[place])), nil
}

func (t *table[T]) get(handle provider.Handle) (*T, error) {
	place, generation := datapath.SplitHandle(uint32(handle))
	switch {
	case int(place) >= len(t.objects) || generation == 0:
		return nil, fmt.Errorf("%w: no such %s", verbs.ErrInvalid, t.noun)
	case t.objects[place] == nil || t.generations[place] != generation:
		return nil, fmt.Errorf("%w: the %s", cmp.Or(t.gone, verbs.ErrObjectClosed), t.noun)
	}
	return t.objects[place], nil
}

// remove frees the place of a handle that get has just found.
func (t *table[T]) remove(handle provider.Handle) {
	place, generation := datapath.SplitHandle(uint32(handle))
	t.objects[place] = nil
	t.generations[place] = max((generation+1)%datapath.HandleGenerations, 1)
	t.free = append(t.free, place)
	t.quota.Give(t.kind, 1)
}

// close gives back what the objects that are left take of the quota.
func (t *table[T]) close() { t.quota.Give(t.kind, len(t.all())) }

// all lists the objects.
func (t *table[T]) all() (list []*T) {
	for _, object := range t.objects {
		if object != nil {
			list = append(list, object)
		}
	}
	return list
}

// handle is that of the object at a place.
func (t *table[T]) handle(place uint32) provider.Handle {
	return provider.Handle(datapath.HandleFor(place, t.generations[place]))
}

// Distinct returns a handle of a session as a number that no object of its kind in another session has, as long as the
// sessions' own numbers, which are from 1 on, differ. It is 0 for no object.
func Distinct(session uint32, handle provider.Handle) provider.Handle {
	place, generation := datapath.SplitHandle(uint32(handle))
	if generation == 0 {
		return 0
	}
	return provider.Handle(datapath.HandleFor(place, session))
}

// count is how many objects there are.
func (t *table[T]) count() int { return len(t.objects) - len(t.free) }
