package host

import (
	"net/netip"
	"slices"
	"testing"
)

// TestBroadcasts: the last address of each subnet, also where the address has bits of its own
// above the host part, and no host's address.
func TestBroadcasts(t *testing.T) {
	for _, row := range []struct{ address, configured, want string }{
		{"10.77.0.2/24", "", "10.77.0.255"},
		{"192.168.1.2/24", "", "192.168.1.255"},
		{"10.7.9.2/24", "10.7.9.255", "10.7.9.255"},
		{"172.31.255.9/16", "", "172.31.255.255"},
		{"10.0.0.5/30", "", "10.0.0.7"},
		{"10.255.3.4/8", "", "10.255.255.255"},
		{"10.0.0.2/0", "", "255.255.255.255"},
		{"10.0.0.2/31", "", ""},
		{"10.0.0.2/32", "10.0.0.9", "10.0.0.9"},
		{"fd77::1/64", "", ""},
	} {
		prefix := netip.MustParsePrefix(row.address)
		a := Address{IP: prefix.Addr(), Prefix: prefix.Bits()}
		var want []netip.Addr
		if row.configured != "" {
			a.Broadcast = netip.MustParseAddr(row.configured)
		}
		if row.want != "" {
			want = []netip.Addr{netip.MustParseAddr(row.want)}
		}
		if got := Broadcasts([]Address{a}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", row.address, got, want)
		}
	}
}
