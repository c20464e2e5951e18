// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// follower reads the kernel's notifications in one network namespace, for all subscriptions of the
// process.
type follower struct {
	cookie  uint64 // of the namespace
	socket  *nl.NetlinkSocket
	queues  *nl.NetlinkSocket // nil if the kernel does not report changes of queues
	stopped chan struct{}     // closed by stop
	running sync.WaitGroup

	mu            sync.Mutex
	subscriptions map[*Subscription]struct{}
	indexes       []int // interfaces whose notifications the filter admits
}

// startFollower starts a follower in the calling thread's network namespace.
func startFollower() (*follower, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_NEIGH,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	queues, err := listenToQueues()
	if err != nil {
		socket.Close()
		return nil, err
	}
	f := &follower{socket: socket, queues: queues, stopped: make(chan struct{}), subscriptions: map[*Subscription]struct{}{}}
	f.running.Go(func() { f.run(socket, readChange) })
	if queues != nil {
		f.running.Go(func() { f.run(queues, readQueues) })
	}
	return f, nil
}

// stop ends the follower and waits for its goroutines.
func (f *follower) stop() {
	close(f.stopped)
	f.socket.Close()
	if f.queues != nil {
		f.queues.Close()
	}
	f.running.Wait()
}

// readPause is the pause after a failed read.
const readPause = 100 * time.Millisecond

// reader parses a notification; see readChange.
type reader func(syscall.NetlinkMessage) (index int, report func(Changes))

// run reads notifications and reports changes, until stop.
func (f *follower) run(socket *nl.NetlinkSocket, read reader) {
	for {
		messages, _, err := socket.Receive()
		pause := f.handle(read, messages, err)
		select {
		case <-f.stopped:
			return
		default:
		}
		if !pause {
			continue
		}
		select {
		case <-f.stopped:
			return
		case <-time.After(readPause):
		}
	}
}

// handle reports the changes that were read, or Missed if the read failed. It returns whether to pause before the next
// read.
func (f *follower) handle(read reader, messages []syscall.NetlinkMessage, err error) (pause bool) {
	switch {
	case err == nil:
		for _, m := range messages {
			f.notify(read(m))
		}
		return false
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return false
	}
	f.notify(0, Changes.Missed)
	return !errors.Is(err, unix.ENOBUFS) // after an overflow the socket can be read immediately
}

// notify calls a method of all subscribers to an interface, or with index 0 of all subscribers.
func (f *follower) notify(index int, report func(Changes)) {
	if report == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscriptions {
		if s.changes != nil && (index == 0 || index == s.index) {
			report(s.changes)
		}
	}
}
