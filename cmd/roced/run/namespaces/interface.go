// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// errNoInterface reports a namespace without a suitable interface.
var errNoInterface = fmt.Errorf("%w: the network namespace has neither a default route nor exactly one interface besides lo", verbs.ErrInvalid)

// findInterface returns the interface for the card of a namespace: that of the default route, otherwise the
// only one that is up.
func findInterface(path string) (found verbs.Device, err error) {
	err = hca.RunIn(path, func() error {
		list, err := hca.ListDevices()
		if err != nil {
			return err
		}
		index, err := defaultInterface()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(i verbs.Device) bool { return index > 0 && i.Index != index || index == 0 && !isUp(i.Index) })
		if len(list) != 1 {
			return errNoInterface
		}
		found = list[0]
		return nil
	})
	return found, err
}

// defaultInterface returns the interface of the default route with the lowest metric, IPv4 before IPv6; 0 if
// there is no default route.
func defaultInterface() (index int, err error) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return 0, fmt.Errorf("%w: routes: %w", verbs.ErrHost, err)
		}
		best := -1
		for i, r := range routes {
			if isDefault(r.Dst) && r.LinkIndex > 0 && (best < 0 || r.Priority < routes[best].Priority) {
				best = i
			}
		}
		if best >= 0 {
			return routes[best].LinkIndex, nil
		}
	}
	return 0, nil
}

func isDefault(to *net.IPNet) bool {
	if to == nil {
		return true
	}
	ones, _ := to.Mask.Size()
	return ones == 0
}

func isUp(index int) bool {
	i, err := net.InterfaceByIndex(index)
	return err == nil && i.Flags&net.FlagUp != 0
}
