// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// MDBEntry is a group with members on a port, according to snooping.
type MDBEntry struct {
	Port  string
	Group netip.Addr
}

// From linux/if_bridge.h.
const (
	mdbaMDB       = 1
	mdbaEntry     = 1
	mdbaEntryInfo = 1

	sizeofPortMsg = 8  // struct br_port_msg
	sizeofEntry   = 28 // struct br_mdb_entry
)

// MDB lists the entries that bridge-mdb(8) shows, except the bridge's own memberships.
func (b *Bridge) MDB() ([]MDBEntry, error) {
	var list []MDBEntry
	err := b.Do(func() (err error) {
		list, err = b.dumpMDB()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("groups of the bridge in %s: %w", b.Name(), err)
	}
	return list, nil
}

// Member reports whether hosts on a port are members of a group.
func (b *Bridge) Member(port string, group netip.Addr) (bool, error) {
	list, err := b.MDB()
	return slices.Contains(list, MDBEntry{port, group}), err
}

// dumpMDB runs inside the namespace. The netlink package does not support this request.
func (b *Bridge) dumpMDB() ([]MDBEntry, error) {
	names, err := b.names()
	if err != nil {
		return nil, err
	}
	request := nl.NewNetlinkRequest(unix.RTM_GETMDB, unix.NLM_F_DUMP)
	request.AddRawData([]byte{unix.AF_BRIDGE, 0, 0, 0, 0, 0, 0, 0})
	messages, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil {
		return nil, err
	}
	var list []MDBEntry
	for _, message := range messages {
		if len(message) < sizeofPortMsg {
			continue
		}
		err := nested(message[sizeofPortMsg:], mdbaMDB, func(table []byte) error {
			return nested(table, mdbaEntry, func(entry []byte) error {
				return nested(entry, mdbaEntryInfo, func(info []byte) error {
					if port, ok := names[entryPort(info)]; ok {
						list = append(list, MDBEntry{port, entryGroup(info)})
					}
					return nil
				})
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// names returns the bridge's ports by index.
func (b *Bridge) names() (map[int]string, error) {
	links, err := b.nl.LinkList()
	names := map[int]string{}
	for _, link := range links {
		if link.Attrs().MasterIndex != 0 {
			names[link.Attrs().Index] = link.Attrs().Name
		}
	}
	return names, err
}

// nested calls fn with each attribute of a kind.
func nested(data []byte, kind uint16, fn func([]byte) error) error {
	attributes, err := nl.ParseRouteAttr(data)
	if err != nil {
		return err
	}
	for _, attribute := range attributes {
		if attribute.Attr.Type&nl.NLA_TYPE_MASK == kind {
			if err := fn(attribute.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

func entryPort(info []byte) int {
	if len(info) < sizeofEntry {
		return 0
	}
	return int(binary.NativeEndian.Uint32(info))
}

// entryGroup reads the address at 8, of 16 bytes, by the EtherType after it.
func entryGroup(info []byte) netip.Addr {
	if binary.BigEndian.Uint16(info[24:]) == unix.ETH_P_IP {
		return netip.AddrFrom4([4]byte(info[8:]))
	}
	return netip.AddrFrom16([16]byte(info[8:]))
}
