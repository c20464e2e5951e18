// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"github.com/roced/roced/internal/host"
	"github.com/vishvananda/netlink/nl"
)

// xdpFeatures holds the XDP features of a driver (linux/netdev.h, Linux 6.3).
type xdpFeatures struct {
	known bool
	bits  uint64
	// segments is the number of chunks per frame with zero-copy; 0 or 1 means one (Linux 6.6).
	segments uint32
}

// Bits of enum netdev_xdp_act.
const (
	xdpBasic    = 1 << 0
	xdpRedirect = 1 << 1
	xskZeroCopy = 1 << 3
	rxSG        = 1 << 5
)

func (f xdpFeatures) has(bits uint64) bool { return f.bits&bits == bits }

// Numbers of the netdev netlink family.
const (
	netdevCommandGet    = 1
	netdevAttrIndex     = 1
	netdevAttrXDPFlags  = 3
	netdevAttrSegments  = 4
	netdevFamilyVersion = 1
)

// decode reads one attribute of the kernel's response.
func (f *xdpFeatures) decode(attribute uint16, value []byte) {
	switch {
	case attribute == netdevAttrXDPFlags && len(value) >= 8:
		f.known, f.bits = true, nl.NativeEndian().Uint64(value)
	case attribute == netdevAttrSegments && len(value) >= 4:
		f.segments = nl.NativeEndian().Uint32(value)
	}
}

// queryXDPFeatures queries the kernel for an interface's features. Kernels without the netdev family return none.
func queryXDPFeatures(index int) (f xdpFeatures, err error) {
	family, err := host.FindGenetlinkFamily("netdev")
	if err != nil {
		return f, nil
	}
	answers, err := host.QueryGenetlink(family.ID, netdevCommandGet, netdevFamilyVersion, nl.NewRtAttr(netdevAttrIndex, nl.Uint32Attr(uint32(index))))
	if err != nil {
		return f, fmt.Errorf("XDP features: %w", err)
	}
	for _, answer := range answers {
		attributes, err := nl.ParseRouteAttr(answer)
		if err != nil {
			return f, fmt.Errorf("XDP features: %w", err)
		}
		for _, a := range attributes {
			f.decode(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value)
		}
	}
	return f, nil
}
