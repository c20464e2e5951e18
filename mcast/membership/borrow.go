// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// borrowed is a hold by an address with autojoin that another program or the administrator added. It is never changed.
type borrowed struct{}

// release implements hold.
func (borrowed) release() error { return nil }

// describe implements hold.
func (borrowed) describe() (via Method, foreign bool) { return Netlink, true }

// borrow uses an existing address. It fails if the address has no autojoin, because then it does
// not make the host a member.
func (a *addresses) borrow(group netip.Addr) (hold, error) {
	list, err := a.queries.Addresses()
	if err != nil {
		return nil, err
	}
	if has(list, group, hasAutojoin) {
		return borrowed{}, nil
	}
	return nil, fmt.Errorf("%w: %s already has this address, without autojoin; remove it, or use method socket", unix.EEXIST, a.ifname)
}
