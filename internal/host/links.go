// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Links reports interfaces that appear, change or disappear in the network namespace of the thread that
// opened it. It has its own socket, because the filter of Follow admits only subscribed interfaces.
type Links struct {
	socket *nl.NetlinkSocket
	closed atomic.Bool
}

// WatchLinks starts listening.
func WatchLinks() (*Links, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return &Links{socket: socket}, nil
}

// Changed waits for a possible change, or for Close.
func (l *Links) Changed() error {
	for {
		messages, _, err := l.socket.Receive()
		switch {
		case l.closed.Load():
			return fmt.Errorf("netlink: %w", unix.ECANCELED)
		case errors.Is(err, unix.ENOBUFS): // some notifications were lost
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("netlink: %w", err)
		}
		for _, m := range messages {
			if aboutLink(m) {
				return nil
			}
		}
	}
}

func aboutLink(m syscall.NetlinkMessage) bool {
	_, report := readChange(m)
	return report != nil && (m.Header.Type == unix.RTM_NEWLINK || m.Header.Type == unix.RTM_DELLINK)
}

// Close ends Changed.
func (l *Links) Close() {
	l.closed.Store(true)
	l.socket.Close()
}
