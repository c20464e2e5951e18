// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Peer is the program at the other end of a connection, as the kernel described it when it connected. Capabilities
// are not checked: any process has them in a user namespace of its own.
type Peer struct {
	PID       int
	UID       uint32
	Groups    []uint32 // the effective group and the supplementary ones
	Owner     uint32   // the user that owns UID, and is charged
	Container string   // the name of the container's socket by which it came; empty for the service's own socket

	socket   *net.UnixConn
	confined atomic.Bool

	mu     sync.Mutex
	caller *Caller // nil until it has been found
}

// identify returns the peer of an accepted socket. Its owner and container are not set.
func identify(socket *net.UnixConn) (p *Peer, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { p, failed = readCredentials(int(fd)) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("credentials of a peer: %w", err)
	}
	p.socket = socket
	return p, nil
}

func readCredentials(fd int) (*Peer, error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	groups, err := supplementaryGroups(fd)
	if err != nil {
		return nil, err
	}
	return &Peer{PID: int(credentials.Pid), UID: credentials.Uid, Groups: append(groups, credentials.Gid)}, nil
}

// Holder identifies the account to which connections are charged: that of a user, or of all programs that come by one
// container's socket.
type Holder struct {
	Container string // the name of the container's socket; empty for a user
	UID       uint32 // of a user
}

// Holder returns the holder of the account that the peer uses.
func (p *Peer) Holder() Holder {
	if p.Container != "" {
		return Holder{Container: p.Container}
	}
	return Holder{UID: p.Owner}
}

// String returns "user N" or "socket NAME". The user's name is not looked up, since that can take long.
func (h Holder) String() string {
	if h.Container != "" {
		return "socket " + h.Container
	}
	return fmt.Sprintf("user %d", h.UID)
}

// Sharer identifies the programs that may share process files and XRC domains: those of one uid.
type Sharer struct {
	Container string
	UID       uint32
}

// Sharer returns the sharer that the peer belongs to.
func (p *Peer) Sharer() Sharer { return Sharer{p.Container, p.UID} }

// Logger returns a logger whose lines name the peer.
func (p *Peer) Logger(log *slog.Logger) *slog.Logger {
	log = log.With("pid", p.PID, "uid", p.UID)
	if p.Container != "" {
		log = log.With("socket", p.Container)
	}
	return log
}

// Confine states whether the peer is in another network namespace than the service, or in a container. Then its uid
// gives it no privileges on this host.
func (p *Peer) Confine(confined bool) { p.confined.Store(confined) }

// IsConfined reports what Confine has set.
func (p *Peer) IsConfined() bool { return p.confined.Load() }

// IsPrivileged reports whether the peer may use privileged Q_Keys: root and members of the group; -1 is no group.
func (p *Peer) IsPrivileged(group int) bool {
	return !p.IsConfined() && (p.UID == 0 || group >= 0 && slices.Contains(p.Groups, uint32(group)))
}

// MayBindService reports whether the peer may listen on privileged ports: root, also root of another network namespace,
// whose card is its own.
func (p *Peer) MayBindService() bool { return p.Container == "" && p.UID == 0 }

// SeesAll reports whether the peer may see the objects of all users: root and the service's own user.
func (p *Peer) SeesAll() bool {
	return !p.IsConfined() && (p.UID == 0 || p.UID == uint32(os.Geteuid()))
}

// Sees reports whether the peer may see the objects of another one. A confined peer sees only its own network namespace.
func (p *Peer) Sees(other *Peer) bool {
	if p.Container != other.Container && !p.SeesAll() {
		return false
	}
	if p.IsConfined() && p.Container == "" && !p.sharesNamespace(other) {
		return p == other
	}
	return p.SeesAll() || other.UID == p.UID
}
