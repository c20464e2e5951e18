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

// ErrNotJoined is the error of leaving a group that was not joined. It is EADDRNOTAVAIL,
// as rdma_leave_multicast(3) has it.
var ErrNotJoined = errno.New("not joined", unix.EADDRNOTAVAIL)

// Config says on which interface groups are joined, and how.
type Config struct {
	Interface string
	// Namespace is the file of the interface's network namespace. Without it, it is the
	// calling thread's, and Join must be called from threads of the same one.
	Namespace string
	// Via is Auto unless set.
	Via Method
	// StateDir keeps the records of addresses made for Netlink, so that what a killed
	// process left is removed by the next one: /run/roced unless set. It is to be a
	// directory that does not outlive the kernel.
	StateDir string
	// Log is told what cannot be told to a caller. Nothing is logged without it.
	Log *slog.Logger
}

// Memberships are the groups that the host is a member of on one interface, for us.
// Only full members belong here: a send-only member never makes the host send IGMP or
// MLD, and so does neither join nor leave.
//
// The methods may be called from several goroutines.
type Memberships struct {
	ifname       string
	index        int
	via          Method
	log          *slog.Logger
	namespace    *host.Namespace
	addresses    *addresses
	igmp, mld    groupList
	changes      pendingChanges
	subscription *host.Subscription
	stop         chan struct{} // closed by Close
	followed     chan struct{} // closed when keepUp has ended

	mu     sync.Mutex
	joined map[netip.Addr]*membership
	ended  error // why nothing more can be joined
	mtu    int   // of the interface, in bytes, when it was looked at last
	// lagging says that the last look has failed.
	lagging bool
}

// membership is one group. Its hold on the kernel may be replaced by another.
type membership struct {
	users    int
	hold     hold
	restored patience
	others   int // addresses of the group that are not ours, when they were looked at last
}

// hold is what makes the kernel a member of a group.
type hold interface {
	release() error
	describe() (via Method, foreign bool)
}

// Open gets ready to join groups on an interface, and removes what killed processes
// left in its network namespace. It needs no capability; Netlink needs CAP_NET_ADMIN
// at every Join, and another namespace than the process's own CAP_SYS_ADMIN here.
func Open(c Config) (*Memberships, error) {
	m := &Memberships{
		ifname: c.Interface, via: c.Via, joined: map[netip.Addr]*membership{},
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		changes: pendingChanges{ready: make(chan struct{}, 1)}, stop: make(chan struct{}), followed: make(chan struct{}),
	}
	var err error
	if m.namespace, err = host.Enter(c.Namespace); err != nil {
		return nil, err
	}
	if err := m.namespace.Do(func() error { return m.open(cmp.Or(c.StateDir, journal.Dir)) }); err != nil {
		m.namespace.Close()
		return nil, fmt.Errorf("memberships on %s: %w", c.Interface, err)
	}
	if err := m.addresses.sweep(); err != nil {
		m.log.Warn("cannot remove the groups' addresses that a killed process left", "error", err)
	}
	m.subscription.Tell(&m.changes)
	go m.keepUp()
	return m, nil
}

// open runs inside the namespace.
func (m *Memberships) open(stateDir string) (err error) {
	a := &addresses{namespace: m.namespace, ifname: m.ifname, dir: stateDir}
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

// unfollow closes what changes are followed by.
func (m *Memberships) unfollow() error {
	if m.subscription != nil {
		m.subscription.Close()
	}
	return errors.Join(m.igmp.close(), m.mld.close())
}

// Join makes the host a member of a group, once for all who join it: the first Join
// makes the kernel send the report, further ones only count.
//
// The host's own sockets that are bound to a port of the group, without having joined
// it, hear it from then on, as after any other program's join (ip(7), IP_MULTICAST_ALL).
// What XDP redirects, in turn, no socket hears.
//
// It fails with EINVAL for what is not a multicast address, has a zone, or is of IPv6
// where the interface does not carry it, EMFILE when
// the process may open no more files, ENODEV when the interface has gone, ENOBUFS when
// net.ipv4.igmp_max_memberships is reached and Netlink was asked for.
func (m *Memberships) Join(group netip.Addr) error {
	group = group.Unmap()
	if !group.IsMulticast() || group.Zone() != "" {
		return fmt.Errorf("join %v: %w: not a plain multicast address", group, unix.EINVAL)
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

// join chooses the method.
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

// Leave undoes one Join. The last one for a group makes the kernel send the leave,
// unless the host is a member on its own account. The group counts as left even when
// an error says that something stayed behind; ErrNotJoined says that there was none.
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

// Joined is a group that the host is a member of for us.
type Joined struct {
	Group netip.Addr
	Users int    // Joins without Leave
	Via   Method // Netlink or Socket; Auto when it could not be joined again, which is logged
	// Foreign groups are held by an address with autojoin that somebody else made.
	Foreign bool
}

// List lists what is joined, by address.
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
