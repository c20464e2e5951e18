package host

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Links tells of interfaces that come, change and go, in the network namespace of the thread that asked. It has a
// socket of its own: that of Follow lets through only what concerns the interfaces that are followed.
type Links struct {
	socket *nl.NetlinkSocket
	closed atomic.Bool
}

// WatchLinks begins to listen.
func WatchLinks() (*Links, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return &Links{socket: socket}, nil
}

// Changed waits until something may have changed, or Close.
func (l *Links) Changed() error {
	for {
		messages, _, err := l.socket.Receive()
		switch {
		case l.closed.Load():
			return fmt.Errorf("netlink: %w", unix.ECANCELED)
		case errors.Is(err, unix.ENOBUFS): // some were lost
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
	_, say := readChange(m)
	return say != nil && (m.Header.Type == unix.RTM_NEWLINK || m.Header.Type == unix.RTM_DELLINK)
}

// Close ends Changed.
func (l *Links) Close() {
	l.closed.Store(true)
	l.socket.Close()
}
