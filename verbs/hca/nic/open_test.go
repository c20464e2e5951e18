// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interfaces that the tests cannot create are tested at the function that rejects them.
func TestCheckLinkRefuses(t *testing.T) {
	tun := &netlink.GenericLink{LinkAttrs: attrs("tun0", 1500), LinkType: "tun"}
	tun.EncapType, tun.RawFlags = "none", unix.IFF_UP
	b := &builder{name: "tun0", link: tun}
	refused(t, b.checkLink(), unix.EOPNOTSUPP, "not an Ethernet interface but none")
}

// On a kernel before 6.6 a frame has one chunk: the RDMA MTU is at most 2048, and for a larger one the error names the
// required kernel.
func TestWithoutMultiBuffer(t *testing.T) {
	old := func() (bool, error) { return false, nil }
	for _, row := range []struct {
		link      int
		asked     wire.MTU
		want      wire.MTU
		says      string
		supported func() (bool, error)
	}{
		{9000, 0, wire.MTU2048, "", old},
		{9000, wire.MTU2048, wire.MTU2048, "", old},
		{1500, 0, wire.MTU1024, "", old},
		{9000, wire.MTU4096, 0, "require Linux 6.6", old},
		{9000, 0, 0, "cannot be probed", func() (bool, error) { return false, errors.New("cannot be probed") }},
	} {
		var log logged
		b := &builder{name: "eth0", config: Config{MTU: row.asked, Log: log.logger()}, multiBuffer: row.supported}
		err := b.fitMTU(row.link)
		if err == nil {
			err = b.checkMultiBuffer()
		}
		if row.says != "" {
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("MTU %d, asked for %v: %v", row.link, row.asked, err)
			}
			continue
		}
		check(t, err)
		if warned := log.says("6.6"); b.maxMTU != row.want || warned != (row.link == 9000 && row.asked == 0) {
			t.Errorf("MTU %d, asked for %v: %v, want %v; warned: %v", row.link, row.asked, b.maxMTU, row.want, warned)
		}
	}
}
