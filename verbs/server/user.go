package server

import (
	"fmt"
	"net"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"golang.org/x/sys/unix"
)

// peer is who is at the other end of a socket, as the kernel said when it connected. Capabilities are
// not asked for: in a user namespace of its own anybody has them.
type peer struct {
	pid    int
	uid    uint32
	groups []uint32 // the effective group, and the supplementary ones
	owner  uint32   // the user whose uid it is, to whom all counts

	confined bool // it is elsewhere than the service, where uids say less
}

func peerOf(socket *net.UnixConn) (p peer, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return p, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { p, failed = readPeer(int(fd)) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return p, fmt.Errorf("who has connected: %w", err)
	}
	return p, nil
}

func readPeer(fd int) (p peer, err error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return p, err
	}
	groups, err := peerGroups(fd)
	if err != nil {
		return p, err
	}
	return peer{pid: int(credentials.Pid), uid: credentials.Uid, groups: append(groups, credentials.Gid)}, nil
}

// privileged reports whether the peer may use privileged Q_Keys: root, and members of the group.
func (p *peer) privileged(group int) bool {
	return !p.confined && (p.uid == 0 || group >= 0 && slices.Contains(p.groups, uint32(group)))
}

// account is what a user has in all connections.
type account struct {
	name        string
	quota       *quota.Quota
	connections int // under Server.mu
}

// enter counts a connection of a user, from the first moment: also one that says nothing holds a
// descriptor.
func (s *Server) enter(uid uint32) (*account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[uid]
	if a == nil {
		name := fmt.Sprintf("user %d", uid) // the user's name is not looked up: that may take long
		a = &account{name: name, quota: quota.New(name, s.limits.Limits, s.pool)}
		s.accounts[uid] = a
	}
	if limit := s.limits.Connections; limit > 0 && a.connections >= limit {
		return nil, fmt.Errorf("%w: %s has %d connections, and may have %d; close some", verbs.ErrLimit, a.name, a.connections, limit)
	}
	if err := a.quota.TakeDescriptors(connectionDescriptors); err != nil {
		s.forget(uid, a)
		return nil, err
	}
	a.connections++
	return a, nil
}

// connectionDescriptors are those of a connection: its socket, and its signals.
const connectionDescriptors = 3

// forget forgets a user without connections. The caller holds mu.
func (s *Server) forget(uid uint32, a *account) {
	if a.connections == 0 {
		delete(s.accounts, uid)
	}
}

// leave forgets a user with the last connection.
func (s *Server) leave(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[uid]
	a.quota.GiveDescriptors(connectionDescriptors)
	a.connections--
	s.forget(uid, a)
}
