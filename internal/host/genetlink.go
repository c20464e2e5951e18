package host

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// genetlinkHeader is a genlmsghdr. The netlink package's own (nl.Genlmsg, v1.3.1) has two bytes and sends four:
// what lies behind it in memory, which may be another goroutine's.
type genetlinkHeader [nl.SizeofGenlmsg]byte

func (h *genetlinkHeader) Len() int          { return len(h) }
func (h *genetlinkHeader) Serialize() []byte { return h[:] }

// multicastGroup finds the number of a multicast group of a generic netlink family, in the calling thread's
// network namespace; 0 if the family has no such group, ENOENT if there is no such family.
func multicastGroup(family, name string) (int, error) {
	request := nl.NewNetlinkRequest(nl.GENL_ID_CTRL, 0)
	request.AddData(&genetlinkHeader{nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION})
	request.AddData(nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(family)))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return 0, fmt.Errorf("netlink family of %s: %w", family, err)
	}
	for _, answer := range answers {
		if len(answer) < nl.SizeofGenlmsg {
			continue
		}
		if id := groupIn(answer[nl.SizeofGenlmsg:], name); id != 0 {
			return id, nil
		}
	}
	return 0, nil
}

// groupIn finds a group's number in a family's attributes, of which one is a list of groups.
func groupIn(family []byte, name string) int {
	for _, groups := range attributes(family, nl.GENL_CTRL_ATTR_MCAST_GROUPS) {
		all, _ := nl.ParseRouteAttr(groups)
		for _, group := range all {
			names := attributes(group.Value, nl.GENL_CTRL_ATTR_MCAST_GRP_NAME)
			ids := attributes(group.Value, nl.GENL_CTRL_ATTR_MCAST_GRP_ID)
			if len(names) == 1 && nl.BytesToString(names[0]) == name && len(ids) == 1 && len(ids[0]) == 4 {
				return int(binary.NativeEndian.Uint32(ids[0]))
			}
		}
	}
	return 0
}

// attributes are the values of one type in a list of netlink attributes.
func attributes(list []byte, kind uint16) (values [][]byte) {
	all, _ := nl.ParseRouteAttr(list)
	for _, one := range all {
		if one.Attr.Type&nl.NLA_TYPE_MASK == kind {
			values = append(values, one.Value)
		}
	}
	return values
}
