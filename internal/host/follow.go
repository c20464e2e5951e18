// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// followers holds the followers of this process, by the cookies of their namespaces.
var followers = struct {
	sync.Mutex
	of map[uint64]*follower
}{of: map[uint64]*follower{}}

// Subscription reports changes of one interface, and of the routes in its namespace.
type Subscription struct {
	index    int
	follower *follower
	changes  Changes // nil before Tell; under follower.mu
}

// Follow subscribes to changes of an interface in the calling thread's network namespace. All subscriptions of a
// process in one namespace share two sockets, which are closed with the last subscription.
func Follow(index int) (*Subscription, error) {
	here, err := journal.ThisNamespace()
	if err != nil {
		return nil, err
	}
	followers.Lock()
	defer followers.Unlock()
	f := followers.of[here.Cookie]
	if f == nil {
		if f, err = startFollower(); err != nil {
			return nil, err
		}
		f.cookie, followers.of[here.Cookie] = here.Cookie, f
	}
	s := &Subscription{index: index, follower: f}
	if err := f.add(s); err != nil {
		s.leave()
		return nil, fmt.Errorf("netlink: filter: %w", err)
	}
	return s, nil
}

// Tell starts calling the methods of changes, until Close. It first calls Missed, because changes before Tell are not
// reported.
func (s *Subscription) Tell(changes Changes) {
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	s.changes = changes
	changes.Missed()
}

// Close ends the subscription: no method of Changes is called afterwards. Further calls do nothing.
// It must not be called from a method of Changes.
func (s *Subscription) Close() {
	followers.Lock()
	defer followers.Unlock()
	s.leave()
}

// leave is Close for callers that hold the lock of followers.
func (s *Subscription) leave() {
	if was, left := s.follower.remove(s); was && left == 0 {
		delete(followers.of, s.follower.cookie)
		s.follower.stop()
	}
}

// add adds a subscription and admits the notifications of its interface.
func (f *follower) add(s *Subscription) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriptions[s] = struct{}{}
	return f.narrow()
}

// remove undoes add. It returns whether the subscription existed, and the number of remaining ones.
func (f *follower) remove(s *Subscription) (was bool, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, was = f.subscriptions[s]
	delete(f.subscriptions, s)
	if was && len(f.subscriptions) > 0 {
		_ = f.narrow() // after an error the filter admits more than necessary
	}
	return was, len(f.subscriptions)
}

// narrow makes the kernel drop notifications of interfaces without subscription. The caller holds
// f.mu.
func (f *follower) narrow() error {
	set := map[int]struct{}{}
	for s := range f.subscriptions {
		set[s.index] = struct{}{}
	}
	indexes := slices.Sorted(maps.Keys(set))
	if slices.Equal(indexes, f.indexes) {
		return nil
	}
	err := attachFilter(f.socket, filterFor(indexes))
	if err == nil && f.queues != nil {
		err = attachFilter(f.queues, filterQueues(indexes))
	}
	if err == nil {
		f.indexes = indexes
	}
	return err
}

func attachFilter(socket *nl.NetlinkSocket, filter []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(socket.GetFd(), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
}
