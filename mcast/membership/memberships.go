// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrNotJoined is the error of leaving a group that was not joined. It is EADDRNOTAVAIL, as in
// rdma_leave_multicast(3).
var ErrNotJoined = errno.New("not joined", unix.EADDRNOTAVAIL)

// Config selects the interface and the method of joining.
type Config struct {
	Interface string
	// Namespace is the file of the interface's network namespace. If it is empty, the namespace is
	// that of the thread that calls Open, and Join must be called from threads in the same one.
	Namespace string
	// Via is the method of joining. The zero value is Auto.
	Via Method
	// StateDir contains records of addresses added through Netlink, so that the next process removes
	// those of a killed one. It must be a directory that is emptied at boot. Default /run/roced.
	StateDir string
	// Log receives errors that cannot be returned; nil disables logging.
	Log *slog.Logger
}

// Memberships makes the host a member of groups on one interface. It is for full members only: a send-only member must
// not make the host send IGMP or MLD, so it neither joins nor leaves here.
//
// Its methods are safe for concurrent use.
type Memberships struct {
	ifname       string
	index        int
	via          Method
	log          *slog.Logger
	namespace    *host.Namespace
	addresses    *addresses
	igmp, mld    groupList
	changes      *pendingChanges
	subscription *host.Subscription
	stop         chan struct{} // closed by Close
	followed     chan struct{} // closed when keepUp has ended

	mu     sync.Mutex
	joined map[netip.Addr]*membership
	ended  error // reason why no group can be joined any more
	mtu    int   // of the interface at the last query, in bytes
	// lagging reports whether the last query of the state failed.
	lagging bool
}

// membership is a joined group. Its hold can be replaced by another.
type membership struct {
	users    int
	hold     hold
	restored restoreCount
	foreign  int // number of addresses of the group that are not ours, at the last query
}

// hold makes the kernel a member of a group: an address or a socket.
type hold interface {
	release() error
	describe() (via Method, foreign bool)
}

// Open prepares for joining groups on an interface, and removes addresses that killed processes left in its network
// namespace. It needs CAP_SYS_ADMIN only for a namespace other than the process's own. With Netlink every Join needs
// CAP_NET_ADMIN.
func Open(c Config) (*Memberships, error) {
	m := &Memberships{
		ifname: c.Interface, via: c.Via, joined: map[netip.Addr]*membership{},
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		changes: newPendingChanges(), stop: make(chan struct{}), followed: make(chan struct{}),
	}
	var err error
	if m.namespace, err = host.Enter(c.Namespace); err != nil {
		return nil, err
	}
	stateDir := cmp.Or(c.StateDir, journal.Dir)
	if err := m.namespace.Do(func() error { return m.open(stateDir) }); err != nil {
		m.namespace.Close()
		return nil, fmt.Errorf("memberships on %s: %w", c.Interface, err)
	}
	if err := sweep(m.addresses.netlink, stateDir, m.namespace.ID()); err != nil {
		m.log.Warn("cannot remove the groups' addresses that a killed process left", "error", err)
	}
	m.subscription.Tell(m.changes)
	go m.keepUp()
	return m, nil
}

// open runs inside the namespace.
func (m *Memberships) open(stateDir string) (err error) {
	a := &addresses{namespace: m.namespace, ifname: m.ifname}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close(), m.unfollow())
		}
	}()
	if a.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	link, err := a.netlink.LinkByName(m.ifname)
	if err != nil {
		return err
	}
	m.index, a.index, m.addresses = link.Attrs().Index, link.Attrs().Index, a
	a.record = journal.New(stateDir, recordKind, journal.Place{Namespace: m.namespace.ID(), Index: m.index})
	if a.queries, err = host.OpenQueries(m.index); err != nil {
		return err
	}
	if m.igmp, err = openGroupList("igmp", parseIGMP); err != nil {
		return err
	}
	if m.mld, err = openGroupList("igmp6", parseMLD); err != nil {
		return err
	}
	m.subscription, err = host.Follow(m.index)
	return err
}

// unfollow ends the subscription to changes and closes the lists of groups.
func (m *Memberships) unfollow() error {
	if m.subscription != nil {
		m.subscription.Close()
	}
	return errors.Join(m.igmp.close(), m.mld.close())
}

// Join makes the host a member of a group. The first Join makes the kernel send the report; further
// Joins are only counted.
//
// From then on, sockets of the host that are bound to a port also receive the group's packets, even if they have not
// joined the group, as after a join by any other program (IP_MULTICAST_ALL in ip(7)). No socket receives packets that
// XDP redirects.
//
// Errors: EINVAL if the address is not multicast, has a zone, or is IPv6 and the interface does not
// carry IPv6; EMFILE if the process has reached its limit of open files; ENODEV if the interface no longer exists;
// ENOBUFS if net.ipv4.igmp_max_memberships or net.core.optmem_max is reached and Via is Netlink.
func (m *Memberships) Join(group netip.Addr) error {
	group = group.Unmap()
	if !group.IsMulticast() || group.Zone() != "" {
		return fmt.Errorf("join %v: %w: not a multicast address without a zone", group, unix.EINVAL)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		return fmt.Errorf("join %v on %s: %w", group, m.ifname, m.ended)
	}
	if one, ok := m.joined[group]; ok {
		one.users++
		return nil
	}
	hold, err := m.join(group)
	if err != nil {
		return fmt.Errorf("join %v on %s: %w", group, m.ifname, err)
	}
	m.joined[group] = &membership{users: 1, hold: hold}
	return nil
}

// join joins a group by the configured method.
func (m *Memberships) join(group netip.Addr) (hold, error) {
	if m.via == Socket || group.Is6() {
		return joinBySocket(m.namespace, m.index, group)
	}
	list, err := m.addresses.queries.Addresses()
	if err == nil && placementOf(list) == alone {
		return m.standIn(group)
	}
	hold, err := m.addresses.join(group)
	if err == nil || m.via == Netlink || errors.Is(err, unix.ENODEV) {
		return hold, err
	}
	m.log.Debug("group joined by a socket, not by an address", "group", group, "interface", m.ifname, "reason", err)
	return joinBySocket(m.namespace, m.index, group)
}

// Leave undoes one Join. The last Leave of a group makes the kernel send the leave, unless another
// program is a member. After an error other than ErrNotJoined, which means that the group was not joined, the group
// counts as left although its address or socket could not be removed.
func (m *Memberships) Leave(group netip.Addr) error {
	group = group.Unmap()
	m.mu.Lock()
	defer m.mu.Unlock()
	one, ok := m.joined[group]
	if !ok {
		return fmt.Errorf("leave %v on %s: %w", group, m.ifname, ErrNotJoined)
	}
	if one.users--; one.users > 0 {
		return nil
	}
	delete(m.joined, group)
	if err := one.hold.release(); err != nil {
		return fmt.Errorf("leave %v on %s: %w", group, m.ifname, err)
	}
	return nil
}

// Joined is a joined group.
type Joined struct {
	Group netip.Addr
	Users int    // Joins minus Leaves
	Via   Method // Netlink or Socket; Auto if the membership was lost and could not be joined again
	// Foreign reports whether the membership uses an address with autojoin of another program.
	Foreign bool
}

// List lists the joined groups, sorted by address.
func (m *Memberships) List() []Joined {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Joined, 0, len(m.joined))
	for group, one := range m.joined {
		via, foreign := one.hold.describe()
		list = append(list, Joined{group, one.users, via, foreign})
	}
	slices.SortFunc(list, func(a, b Joined) int { return a.Group.Compare(b.Group) })
	return list
}

// Close leaves all groups. Further calls do nothing.
func (m *Memberships) Close() error {
	m.mu.Lock()
	if errors.Is(m.ended, errClosed) {
		m.mu.Unlock()
		return nil
	}
	m.ended = errClosed
	joined := m.joined
	m.joined = nil
	m.mu.Unlock()

	close(m.stop)
	<-m.followed
	failed := m.unfollow()
	for group, one := range joined {
		if err := one.hold.release(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("leave %v on %s: %w", group, m.ifname, err))
		}
	}
	failed = errors.Join(failed, m.addresses.close())
	m.namespace.Close()
	return failed
}

// errClosed is the error of a Join after Close.
var errClosed = errno.New("memberships are closed", unix.EBADF)
