// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs/provider"
)

// FuzzAnswer checks that the destination of a response is one address, and its source an address of the port, for any
// header.
func FuzzAnswer(f *testing.F) {
	ipv4, ipv6 := make([]byte, 40), make([]byte, 40)
	copy(ipv4[20:], []byte{0x45, 0x10, 0, 0x30, 0, 1, 0x40, 0, 0x40, 0x11, 0x26, 0xaa, 10, 0, 0, 1, 10, 0, 0, 2})
	copy(ipv6, []byte{0x62, 0x01, 0x23, 0x45, 0, 0x30, 0x11, 0x40, 0xfd, 23: 1, 24: 0xfd, 39: 2})
	for _, header := range [][]byte{ipv4, ipv6, make([]byte, 40)} {
		f.Add(header)
	}
	entries := []GIDEntry{{GID: gidOf("10.0.0.2"), Index: 0}, {GID: gidOf("fd00::2"), Index: 2}, {GID: gidOf("fe80::2"), Index: 5}}
	c := &Context{provider: tableOf{entries: entries}}
	f.Fuzz(func(t *testing.T, header []byte) {
		attr, err := c.InitAHFromWC(&WC{Flags: WCGRH}, header, 1)
		if err != nil {
			if KindOf(err) == nil {
				t.Error(err)
			}
			return
		}
		dest := attr.GRH.DGID
		if dest.IsMulticast() || dest != GRH(header).SGID() || attr.GRH.TrafficClass&ecnBits != 0 {
			t.Errorf("%+v", attr)
		}
		if source := attr.GRH.SGIDIndex; source != 0 && source != 2 && source != 5 {
			t.Errorf("the response's source is the table entry %d", source)
		}
	})
}

// tableOf is a Provider with only a GID table.
type tableOf struct {
	provider.Provider
	entries []GIDEntry
}

func (t tableOf) Do(_ context.Context, _ provider.Code, _, grant any) error {
	grant.(*provider.QueryGIDTableGrant).Entries = t.entries
	return nil
}

func gidOf(text string) GID { return GIDFromAddr(netip.MustParseAddr(text)) }
