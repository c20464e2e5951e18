// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// A group published before it is programmed: queue pairs attach and detach while messages to the group arrive; each
// received message is complete.
func TestGroupPublishedBeforeItIsProgrammed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	end := s.flood(groupV4, func() verbs.QPN { return verbs.MulticastQPN })
	for range hostileRounds {
		a := s.newAttacker().withQP()
		a.recv.Put(1, []ib.SGE{{Length: 200, LKey: a.mr.LKey}})
		a.recv.Publish()
		group := provider.McastRequest{QP: a.qp.QP, MGID: gid(groupV4)}
		check(t, a.session.attachments.attach(group))
		var c ring.CQE
		eventually(t, "a message to the group", func() bool { return a.polls.Available(1) > 0 })
		a.polls.Get(&c)
		check(t, a.session.attachments.detach(group))
		grh := verbs.GRH(a.mr.Memory[:40])
		if c.Status != verbs.WCSuccess || c.QPN != a.qp.Number || grh.DGID() != gid(groupV4) || !bytes.HasPrefix(a.mr.Memory[40:], []byte("floodflood")) {
			t.Fatalf("completion %+v to %v, %q", c, grh.DGID(), a.mr.Memory[40:60])
		}
		check(t, a.session.Close())
	}
	end()
	s.unharmed()
}

// groupSteering records when the card makes XDP redirect a group's packets, and when it stops that.
type groupSteering struct {
	*memnet.Host
	changed func()
}

func (g *groupSteering) AddGroup(netip.Addr) error {
	g.changed()
	return nil
}

func (g *groupSteering) RemoveGroup(netip.Addr) error {
	g.changed()
	return nil
}

// While XDP redirects a group's packets, the card delivers them.
func TestGroupIsProgrammedWhenItIsSteered(t *testing.T) {
	n := newNetwork(t, 0)
	host, err := n.AddHost("a", addressesA...)
	check(t, err)
	group := &groupSteering{Host: host}
	one, err := New(group)
	check(t, err)
	a, b := newStation(t, one), newStation(t, newHost(t, n, "b", addressesB).Card)
	a.receive(0, 1)
	message := b.toGroup(groupV4, 0, 5)
	changes := 0
	group.changed = func() {
		b.post(message)
		b.wait(1)
		check(t, a.wait(1)[0].Err())
		changes++
	}
	check(t, a.qp.AttachMcast(gid(groupV4), 0))
	check(t, a.qp.DetachMcast(gid(groupV4), 0))
	if changes != 2 {
		t.Errorf("%d changes of the steering", changes)
	}
}
