package doctor

import (
	"fmt"

	"github.com/roced/roced/internal/host"
	"github.com/vishvananda/netlink/nl"
)

// xdpFeatures are what a driver offers (linux/netdev.h, Linux 6.3).
type xdpFeatures struct {
	known bool
	bits  uint64
	// segments are the chunks that a frame may take with zero-copy; 0 or 1 for one (Linux 6.6).
	segments uint32
}

// The bits of enum netdev_xdp_act.
const (
	xdpBasic    = 1 << 0
	xdpRedirect = 1 << 1
	xskZeroCopy = 1 << 3
	rxSG        = 1 << 5
)

func (f xdpFeatures) has(bits uint64) bool { return f.bits&bits == bits }

// The netdev family's numbers.
const (
	netdevCommandGet    = 1
	netdevAttrIndex     = 1
	netdevAttrXDPFlags  = 3
	netdevAttrSegments  = 4
	netdevFamilyVersion = 1
)

// take reads an attribute of the kernel's answer.
func (f *xdpFeatures) take(attribute uint16, value []byte) {
	switch {
	case attribute == netdevAttrXDPFlags && len(value) >= 8:
		f.known, f.bits = true, nl.NativeEndian().Uint64(value)
	case attribute == netdevAttrSegments && len(value) >= 4:
		f.segments = nl.NativeEndian().Uint32(value)
	}
}

// askXDPFeatures asks the kernel about an interface; an older one does not know.
func askXDPFeatures(index int) (f xdpFeatures, err error) {
	family, err := host.FindGenetlinkFamily("netdev")
	if err != nil {
		return f, nil
	}
	answers, err := host.AskGenetlink(family.ID, netdevCommandGet, netdevFamilyVersion, nl.NewRtAttr(netdevAttrIndex, nl.Uint32Attr(uint32(index))))
	if err != nil {
		return f, fmt.Errorf("XDP features: %w", err)
	}
	for _, answer := range answers {
		attributes, err := nl.ParseRouteAttr(answer)
		if err != nil {
			return f, fmt.Errorf("XDP features: %w", err)
		}
		for _, a := range attributes {
			f.take(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value)
		}
	}
	return f, nil
}
