package server

import (
	"cmp"
	"slices"
	"time"
)

// Client is a connection, as commands that look show it.
type Client struct {
	PID    int
	UID    uint32
	Device string // empty until it has opened one
	Since  time.Time
}

// Clients lists the connections, the oldest first.
func (s *Server) Clients() (list []Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.connections {
		c.mu.Lock()
		list = append(list, Client{c.peer.pid, c.peer.uid, c.device, c.since})
		c.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b Client) int { return cmp.Compare(a.Since.UnixNano(), b.Since.UnixNano()) })
	return list
}

// User is what a user has in all connections, also those of further uids.
type User struct {
	UID  uint32
	Used Limits
}

// Users lists those that are connected, by their numbers; not those of containers' sockets.
func (s *Server) Users() (list []User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, a := range s.accounts {
		if of.door != "" || a.connections == 0 {
			continue
		}
		list = append(list, User{of.owner, Limits{Connections: a.connections, Limits: a.quota.Used()}})
	}
	slices.SortFunc(list, func(a, b User) int { return cmp.Compare(a.UID, b.UID) })
	return list
}
