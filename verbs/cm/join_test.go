// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// A join beyond the limit is refused at once, and leaves nothing to be left; one whose queue pair cannot be
// attached reports this by its event, and must be left.
func TestJoinFails(t *testing.T) {
	card, _ := newCard(t, newNetwork(t), "host", "10.0.0.1")
	session, err := card.NewSession(hca.SessionConfig{Limits: hca.Limits{Memberships: 2, Attachments: 1}})
	check(t, err)
	ctx := open(t, session)
	c := newChannel(t, ctx)
	one, two := member(t, c, ctx), member(t, c, ctx)
	groups := []netip.Addr{netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("239.1.2.4"), netip.MustParseAddr("239.1.2.5")}
	check(t, one.JoinMulticast(groups[0], cm.JoinStateFullMember, nil))
	expect(t, c, cm.EventMulticastJoin)
	check(t, one.JoinMulticast(groups[1], cm.JoinStateFullMember, "not attached"))
	failed(t, c, "not attached")
	refused(t, one.JoinMulticast(groups[2], cm.JoinStateFullMember, nil), verbs.ErrLimit)
	refused(t, two.JoinMulticast(groups[2], cm.JoinStateFullMember, nil), verbs.ErrLimit) // also of another id
	refused(t, two.LeaveMulticast(groups[2]), unix.EADDRNOTAVAIL)
	check(t, one.LeaveMulticast(groups[1]))
	check(t, two.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinSendOnlyFullMember, Address: groups[2]}, nil))
	expect(t, c, cm.EventMulticastJoin)
	for _, id := range []*cm.ID{one, two} {
		check(t, id.DestroyQP())
		check(t, id.Close())
	}
}

// failed waits for the event of a join that has failed, by a limit.
func failed(t *testing.T, c *cm.EventChannel, context string) {
	t.Helper()
	event, err := c.Get(guard(t))
	check(t, err)
	refused(t, event.Err(), unix.ENOMEM)
	if event.Type != cm.EventMulticastError || event.Context != context {
		t.Errorf("%+v", event)
	}
}

// member is an id with a queue pair.
func member(t *testing.T, c *cm.EventChannel, device *verbs.Context) *cm.ID {
	t.Helper()
	id := newID(t, c)
	check(t, id.Bind(addr("10.0.0.1:0")))
	queuePair(device, id)
	return id
}
