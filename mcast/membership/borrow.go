package membership

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// borrowed is an address with autojoin that somebody else made, such as the
// administrator. It is used as it is.
type borrowed struct{}

// release implements hold.
func (borrowed) release() error { return nil }

// describe implements hold.
func (borrowed) describe() (via Method, foreign bool) { return Netlink, true }

// borrow uses an address that is there already. Without autojoin it makes nobody a member.
func (a *addresses) borrow(group netip.Addr) (hold, error) {
	list, err := a.queries.Addresses()
	if err != nil {
		return nil, err
	}
	if has(list, group, hasAutojoin) {
		return borrowed{}, nil
	}
	return nil, fmt.Errorf("%w: it is local to %s already, but no address of it has autojoin", unix.EEXIST, a.ifname)
}
