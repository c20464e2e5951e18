// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// QueryGenetlink sends a command to a generic netlink family, in the calling thread's network namespace, and returns the
// attributes of each response.
//
// The header of the netlink package (nl.Genlmsg, v1.3.1, and so its GenlFamilyGet) has two bytes but sends four: two bytes
// of adjacent memory, which may belong to another goroutine and which some families reject.
func QueryGenetlink(family uint16, command, version uint8, attribute *nl.RtAttr) (answers [][]byte, err error) {
	request := nl.NewNetlinkRequest(int(family), 0)
	request.AddRawData([]byte{command, version, 0, 0})
	request.AddRawData(attribute.Serialize())
	all, err := request.Execute(unix.NETLINK_GENERIC, 0)
	for _, answer := range all {
		if len(answer) >= nl.SizeofGenlmsg {
			answers = append(answers, answer[nl.SizeofGenlmsg:])
		}
	}
	return answers, err
}

// GenetlinkFamily is a generic netlink family (genetlink(7)).
type GenetlinkFamily struct {
	ID     uint16
	groups []byte // attributes, one per multicast group, numbered from 1
}

// FindGenetlinkFamily finds a family by name. It returns ENOENT if the kernel does not have it.
func FindGenetlinkFamily(name string) (f GenetlinkFamily, err error) {
	answers, err := QueryGenetlink(nl.GENL_ID_CTRL, nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION, nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if err != nil {
		return f, fmt.Errorf("netlink family %s: %w", name, err)
	}
	for _, answer := range answers {
		if id := attribute(answer, nl.GENL_CTRL_ATTR_FAMILY_ID); len(id) == 2 {
			return GenetlinkFamily{binary.NativeEndian.Uint16(id), attribute(answer, nl.GENL_CTRL_ATTR_MCAST_GROUPS)}, nil
		}
	}
	return f, fmt.Errorf("netlink family %s: %w: no family ID in the kernel's response", name, unix.EBADMSG)
}

// group returns the number of a multicast group; 0 if the family has no group of this name.
func (f *GenetlinkFamily) group(name string) int {
	for place := uint16(1); ; place++ {
		group := attribute(f.groups, place)
		if group == nil {
			return 0
		}
		if id := attribute(group, nl.GENL_CTRL_ATTR_MCAST_GRP_ID); len(id) == 4 && nl.BytesToString(attribute(group, nl.GENL_CTRL_ATTR_MCAST_GRP_NAME)) == name {
			return int(binary.NativeEndian.Uint32(id))
		}
	}
}
