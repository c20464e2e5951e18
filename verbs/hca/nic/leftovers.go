// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"github.com/roced/roced/mcast/membership"
)

// Leftover is a change on the host that a killed process left.
type Leftover struct {
	What string // a noun phrase
	Undo string // the command that undoes it
}

// Leftovers lists the changes that killed processes left on an interface. It changes nothing. Without the privilege to
// read journals it lists groups' addresses only.
func Leftovers(name string, c Config) (list []Leftover, err error) {
	err = inNamespace(c.Namespace, func(b *builder) error {
		b.name = name
		if err := b.findLink(); err != nil {
			return err
		}
		if program, _ := bpf.Attached(b.base); program == "" { // otherwise they may belong to a running device
			groups, err := b.leftGroups()
			if err != nil {
				return err
			}
			list = groups
		}
		journaled, err := b.leftInJournals(cmp.Or(c.StateDir, journal.Dir))
		list = append(list, journaled...)
		return err
	})
	return list, err
}

// leftGroups lists the groups' addresses on the interface, if no device uses it by XDP.
func (b *builder) leftGroups() (list []Leftover, err error) {
	queries, err := host.OpenQueries(b.link.Attrs().Index)
	if err != nil {
		return nil, err
	}
	defer queries.Close()
	addresses, err := queries.Addresses()
	for _, group := range membership.Left(addresses) {
		list = append(list, Leftover{fmt.Sprint("the address of group ", group), fmt.Sprintf("ip address del %v/32 dev %s", group, b.name)})
	}
	return list, err
}

// leftInJournals lists the neighbour entries and the settings.
func (b *builder) leftInJournals(dir string) (list []Leftover, err error) {
	here, err := journal.ThisNamespace()
	if err != nil {
		return nil, err
	}
	err = journal.Left(dir, neighboursKind, here, func(index int, lines []string) {
		for _, line := range lines {
			if address, bad := netip.ParseAddr(line); bad == nil && index == b.link.Attrs().Index {
				list = append(list, Leftover{fmt.Sprint("the managed neighbour entry ", address), fmt.Sprintf("ip neighbour replace %v dev %s use", address, b.name)})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = journal.Left(dir, knobsKind, here, func(index int, lines []string) {
		for _, line := range lines {
			if knob, value, ok := strings.Cut(line, " "); ok && isKnob(knob) && index == b.base.Attrs().Index {
				list = append(list, Leftover{"the value of " + knob, fmt.Sprintf("echo %s > /sys/%s", value, knobPath(b.base.Attrs().Name, knob))})
			}
		}
	})
	return list, err
}
