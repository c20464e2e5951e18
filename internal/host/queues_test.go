// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// setQueues does the same as ethtool -L NAME rx N tx N.
func setQueues(t *testing.T, ns *lab.Namespace, name string, count uint32) {
	t.Helper()
	check(t, ns.Do(func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		_, err = tool.SetChannels(name, ethtool.Channels{RxCount: count, TxCount: count})
		return err
	}))
}

// TestFollowerReportsQueues: a change of the number of queues is reported only to subscribers of the interface.
func TestFollowerReportsQueues(t *testing.T) {
	ns := labtest.New(t, "host")
	for _, name := range []string{"a0", "b0", "c0"} {
		link := netlink.LinkAttrs{Name: name, NumRxQueues: 8, NumTxQueues: 8}
		check(t, ns.Netlink().LinkAdd(&netlink.Veth{LinkAttrs: link, PeerName: "peer-of-" + name}))
	}
	_, a := follow(t, ns, "a0")
	_, b := follow(t, ns, "b0")
	for range 20 {
		for _, count := range []uint32{2, 3} {
			a.forget()
			setQueues(t, ns, "c0", count)
			setQueues(t, ns, "a0", count)
			a.until(t, "port")
		}
	}
	if list := b.all(); len(list) != 0 {
		t.Errorf("received changes of another interface: %q", list)
	}
}
