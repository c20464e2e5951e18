// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

const (
	groupV4 = "239.1.2.3"
	groupV6 = "ff0e::1:2:3"
)

// toGroup returns a request to send the contents of a slot to a group.
func (s *station) toGroup(group string, slot, length int) verbs.SendWR {
	s.Helper()
	return verbs.SendWR{
		Opcode: verbs.WRSend, ID: 99, SGList: []verbs.SGE{s.piece(slot, length)}, Flags: verbs.SendSignaled,
		AH: s.ah(group), RemoteQPN: verbs.MulticastQPN, RemoteQKey: testQKey,
	}
}

func (s *station) receiveOn(qp *verbs.QP, slot int) {
	s.Helper()
	check(s, qp.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{s.piece(slot, slotLen)}}}))
}

func TestAttachLimit(t *testing.T) {
	p := newWirePair(t)
	p.a.device.groups.Table = mcast.NewTable[*datapath.QP](mcast.Limits{Groups: 1, QPsPerGroup: 1, Attachments: 1})
	check(t, p.a.qp.AttachMcast(gid(groupV4), 0))
	refused(t, p.a.qp.AttachMcast(gid(groupV6), 0), unix.ENOMEM, "1 groups")
	other := p.a.newQP(defaultCap())
	check(t, other.Activate(testQKey))
	if err := other.AttachMcast(gid(groupV4), 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// A program at its limit can repeat an attachment, and gets an error for another MLID.
func TestAttachAgainAtTheLimit(t *testing.T) {
	w := newWirePair(t)
	session, err := w.a.device.NewSession(SessionConfig{Limits: Limits{Attachments: 1}})
	check(t, err)
	s := newStationIn(t, w.a.device, session)
	check(t, s.qp.AttachMcast(gid(groupV4), 0))
	check(t, s.qp.AttachMcast(gid(groupV4), 0))
	refused(t, s.qp.AttachMcast(gid(groupV4), 1), verbs.ErrInvalid, "MLID")
	refused(t, s.qp.AttachMcast(gid(groupV6), 0), verbs.ErrLimit, "1 attachments")
	check(t, s.qp.DetachMcast(gid(groupV4), 0))
	refused(t, s.qp.DetachMcast(gid(groupV4), 0), verbs.ErrInvalid, "not attached")
}

// Through XDP: a group is steered while a queue pair is attached to it, else left to the host.
func TestGroupThroughXDP(t *testing.T) {
	t.Parallel()
	hosts := newStations(t)
	for _, group := range []string{groupV4, groupV6} {
		check(t, hosts.b.qp.AttachMcast(gid(group), 0))
		hosts.b.receive(0)
		before := counts(t, hosts.b.device)
		copy(hosts.a.slot(9), "to the group")
		hosts.a.post(hosts.a.toGroup(group, 9, 12))
		hosts.a.wait(1)
		wc := hosts.b.wait(1)[0]
		check(t, wc.Err())
		if _, payload := wc.Payload(hosts.b.slot(0)); string(payload) != "to the group" {
			t.Errorf("%s: %q", group, payload)
		}
		check(t, hosts.b.qp.DetachMcast(gid(group), 0))
		hosts.a.post(hosts.a.toGroup(group, 9, 12))
		hosts.a.wait(1)
		eventually(t, "the group left to the host", func() bool {
			return counts(t, hosts.b.device)["pass_group"] > before["pass_group"]
		})
	}
}
