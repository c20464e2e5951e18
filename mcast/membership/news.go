package membership

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// addressIn is an IPv4 address among attributes, or the zero Addr.
func addressIn(attributes []byte, kind uint16) netip.Addr {
	value := host.Attribute(attributes, kind)
	if len(value) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(value))
}

// numberIn is a number among attributes, or 0.
func numberIn(attributes []byte, kind uint16) int {
	value := host.Attribute(attributes, kind)
	if len(value) != 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(value))
}

// nameIn is the interface's name among attributes, or empty.
func nameIn(attributes []byte) string {
	return strings.TrimRight(string(host.Attribute(attributes, unix.IFLA_IFNAME)), "\x00")
}
