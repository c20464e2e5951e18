// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// The new name of a renamed interface is in the device's attributes, in the GID table, in errors and in logs, and is
// required in a group's zone. Traffic continues.
func TestInterfaceIsRenamed(t *testing.T) {
	t.Parallel()
	var log logged
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A, log.option(), WithStateDir(t.TempDir())))
	b := newStation(t, open(t, hosts.B, WithStateDir(t.TempDir())))
	ah, link := a.ah("10.77.0.2"), eth0(t, hosts.A)
	for _, name := range []string{"roce7", "eth0", "fabric0"} {
		was := a.device.Name()
		check(t, hosts.A.Netlink().LinkSetDown(link))
		check(t, hosts.A.Netlink().LinkSetName(link, name))
		check(t, hosts.A.Netlink().LinkSetUp(link))
		eventually(t, "the new name", func() bool { return a.device.Name() == name && a.port().State == verbs.PortActive })
		attr, err := a.ctx.QueryDevice()
		check(t, err)
		gids, err := a.ctx.QueryGIDTable(1)
		check(t, err)
		if attr.Name != name || len(gids) == 0 || gids[0].Interface != name {
			t.Errorf("device %s, GIDs %+v", attr.Name, gids)
		}
		_, err = a.pd.CreateAH(guard(t), a.route("10.99.0.1"))
		refused(t, err, verbs.ErrUnreachable, "through "+name)
		_, err = a.ctx.JoinMulticast(address("ff12::7%"+was), verbs.JoinFullMember)
		refused(t, err, verbs.ErrInvalid, "the device is on "+name)
		joined := join(t, a, "ff12::7%"+name, verbs.JoinFullMember)
		check(t, joined.Close())
		flows(t, &stations{hosts, a, b}, ah)
	}
	if !log.says("was renamed") || !log.says("device=fabric0") {
		t.Error("the renaming was not logged")
	}
}
