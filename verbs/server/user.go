package server

import (
	"fmt"
	"log/slog"
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

	confined bool   // it is elsewhere than the service, or came by a container's socket: uids say less there
	door     string // the name of that socket; empty for the service's own
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

// holder is to whom what connections have counts: the owner of a uid, or all who come by a container's socket.
type holder struct {
	door  string
	owner uint32
}

func (p *peer) holder() holder {
	if p.door != "" {
		return holder{door: p.door}
	}
	return holder{owner: p.owner}
}

// sharer is who may share what programs of one user do: a process file, XRC domains.
type sharer struct {
	door string
	uid  uint32
}

func (p *peer) sharer() sharer { return sharer{p.door, p.uid} }

// log is of what is said about the peer.
func (p *peer) log(log *slog.Logger) *slog.Logger {
	log = log.With("pid", p.pid, "uid", p.uid)
	if p.door != "" {
		log = log.With("socket", p.door)
	}
	return log
}

func (h holder) String() string {
	if h.door != "" {
		return "socket " + h.door
	}
	return fmt.Sprintf("user %d", h.owner) // the user's name is not looked up: that may take long
}

// mayBindService reports whether the peer may listen on ports that need a privilege: root, also root of another network
// namespace, whose card is its own.
func (p *peer) mayBindService() bool { return p.door == "" && p.uid == 0 }

// account is what a user has in all connections.
type account struct {
	name        string
	quota       *quota.Quota
	connections int  // under Server.mu
	dismissed   int  // likewise: sockets that are not served, and not closed yet
	leaving     bool // likewise: it has none, and is forgotten later
}

// enter counts a connection of a user, from the first moment: also one that says nothing holds a
// descriptor.
func (s *Server) enter(of holder) (*account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, limits := s.account(of), s.limits.of(of)
	if limit := limits.Connections; limit > 0 && a.connections >= limit {
		return nil, fmt.Errorf("%w: %s has %d connections, and may have %d; close some", verbs.ErrLimit, a.name, a.connections, limit)
	}
	if err := a.quota.TakeDescriptors(connectionDescriptors); err != nil {
		s.forget(of, a)
		return nil, err
	}
	a.connections++
	return a, nil
}

// account returns the account of a user, a new one for a new user. The caller holds mu.
func (s *Server) account(of holder) *account {
	a := s.accounts[of]
	if a == nil {
		name := of.String()
		a = &account{name: name, quota: quota.New(name, s.limits.of(of).Limits, s.pool)}
		s.accounts[of] = a
	}
	return a
}

// connectionDescriptors are those of a connection: its socket, its signals, one to wait for room in these, and its arena.
const connectionDescriptors = 5

// forget forgets a user without connections. The caller holds mu. Packets that wait for neighbours outlive their session
// by some seconds; meanwhile their user pays for the neighbours, also if it connects again.
func (s *Server) forget(of holder, a *account) {
	decreased := a.quota.Decreased()
	switch {
	case a.connections > 0 || a.dismissed > 0 || a.leaving:
	case a.quota.Unresolved() == 0:
		delete(s.accounts, of)
	default:
		a.leaving = true
		go func() {
			<-decreased
			s.mu.Lock()
			defer s.mu.Unlock()
			a.leaving = false
			s.forget(of, a)
		}()
	}
}

// leave forgets a user with the last connection.
func (s *Server) leave(of holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[of]
	a.quota.GiveDescriptors(connectionDescriptors)
	a.connections--
	s.forget(of, a)
}
