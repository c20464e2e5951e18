package mcast

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// interfaceOf is the index in ifinfomsg and ifaddrmsg: it is in the same place.
func interfaceOf(data []byte) int { return int(int32(binary.NativeEndian.Uint32(data[4:]))) }

// addressIn is an IPv4 address among attributes, or the zero Addr.
func addressIn(attributes []byte, kind uint16) netip.Addr {
	value := attribute(attributes, kind)
	if len(value) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(value))
}

// numberIn is a number among attributes, or 0.
func numberIn(attributes []byte, kind uint16) int {
	value := attribute(attributes, kind)
	if len(value) != 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(value))
}

// nameIn is the interface's name among attributes, or empty.
func nameIn(attributes []byte) string {
	return strings.TrimRight(string(attribute(attributes, unix.IFLA_IFNAME)), "\x00")
}

func attribute(attributes []byte, kind uint16) []byte {
	list, err := nl.ParseRouteAttr(attributes)
	if err != nil {
		return nil
	}
	for _, a := range list {
		if a.Attr.Type == kind {
			return a.Value
		}
	}
	return nil
}
