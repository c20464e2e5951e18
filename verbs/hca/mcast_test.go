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

// toGroup is a request to send to a group what lies in a slot.
func (s *station) toGroup(group string, slot, length int) verbs.SendWR {
	s.Helper()
	return verbs.SendWR{
		Opcode: verbs.WRSend, ID: 99, SGList: []verbs.SGE{s.piece(slot, length)}, Flags: verbs.SendSignaled,
		AH: s.ah(group), RemoteQPN: verbs.MulticastQPN, RemoteQKey: testQKey,
	}
}

// member is another queue pair of a station, attached to a group.
func (s *station) member(group string) *verbs.QP {
	s.Helper()
	qp := s.newQP(defaultCap())
	check(s, qp.Activate(testQKey))
	check(s, qp.AttachMcast(gid(group), 0))
	return qp
}

func (s *station) receiveOn(qp *verbs.QP, slot int) {
	s.Helper()
	check(s, qp.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{s.piece(slot, slotLen)}}}))
}

// Every member gets its copy, on the sender's own device too; who is attached
// to another group gets nothing.
func TestGroupOverTheWire(t *testing.T) {
	for _, group := range []string{groupV4, groupV6} {
		p := newWirePair(t)
		check(t, p.a.qp.AttachMcast(gid(group), 0))
		first, second, other := p.b.member(group), p.b.member(group), p.b.member("239.129.2.3")
		p.a.receive(0)
		for i, qp := range []*verbs.QP{first, second, other} {
			p.b.receiveOn(qp, i)
		}
		copy(p.a.slot(9), "to the group")
		p.a.post(p.a.toGroup(group, 9, 12))
		for _, wc := range p.a.wait(2) {
			check(t, wc.Err())
		}
		got := map[verbs.QPN]bool{}
		for _, wc := range p.b.wait(2) {
			check(t, wc.Err())
			got[wc.QPN] = true
			grh, payload := wc.Payload(p.b.slot(int(wc.ID)))
			if string(payload) != "to the group" || grh.DGID() != gid(group) || wc.SrcQP != p.a.qp.Number() {
				t.Errorf("%s: %q to %v from %v", group, payload, grh.DGID(), wc.SrcQP)
			}
		}
		if !got[first.Number()] || !got[second.Number()] {
			t.Errorf("%s: got by %v", group, got)
		}
		if _, payload := p.a.wcPayload(0); string(payload) != "to the group" {
			t.Errorf("%s: the sender's own copy is %q", group, payload)
		}
	}
}

// wcPayload is a received slot without its completion.
func (s *station) wcPayload(slot int) (verbs.GRH, []byte) {
	wc := verbs.WC{Flags: verbs.WCGRH, ByteLen: 40 + 12}
	return wc.Payload(s.slot(slot))
}

func TestBlockSelfLoopback(t *testing.T) {
	p := newWirePair(t)
	qp, err := p.a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.a.cq, RecvCQ: p.a.cq, Cap: defaultCap(), BlockSelfMcastLB: true})
	check(t, err)
	check(t, qp.Activate(testQKey))
	check(t, qp.AttachMcast(gid(groupV4), 0))
	p.a.receiveOn(qp, 0)
	check(t, qp.PostSend([]verbs.SendWR{p.a.toGroup(groupV4, 9, 1)}))
	if wcs := p.a.wait(1); wcs[0].ID != 99 {
		t.Errorf("%+v", wcs)
	}
	if drops := p.a.drops(); drops["self_loopback"] != 1 || len(drops) != 1 {
		t.Errorf("drops %v", drops)
	}
}

// What rdmavt refuses, with its errno, and nothing attached when refused.
func TestAttachRefused(t *testing.T) {
	p := newWirePair(t)
	mgid := gid(groupV4)
	fresh := p.a.newQP(defaultCap())
	refused(t, fresh.AttachMcast(mgid, 0), unix.EINVAL, "RESET")
	refused(t, fresh.DetachMcast(mgid, 0), unix.EINVAL)
	refused(t, p.a.qp.AttachMcast(gid("10.0.0.2"), 0), unix.EINVAL, "not a multicast GID")
	refused(t, p.a.qp.DetachMcast(mgid, 0), unix.EINVAL, "not attached")
	check(t, p.a.qp.AttachMcast(mgid, 5))
	refused(t, p.a.qp.AttachMcast(mgid, 6), unix.EINVAL, "MLID")
	refused(t, p.a.qp.DetachMcast(mgid, 6), unix.EINVAL)
	check(t, p.a.qp.AttachMcast(mgid, 5)) // twice is no error
	check(t, p.a.qp.DetachMcast(mgid, 5)) // and needs one detach
	refused(t, p.a.qp.DetachMcast(mgid, 5), unix.EINVAL)
	if n := mcast.TreeEmpty(p.a.device.groups); n != 0 {
		t.Errorf("%d ports have groups", n)
	}
}

func TestAttachLimit(t *testing.T) {
	p := newWirePair(t)
	p.a.device.groups = mcast.NewTable[*datapath.QP](mcast.Limits{Groups: 1, QPsPerGroup: 1, Attachments: 1})
	check(t, p.a.qp.AttachMcast(gid(groupV4), 0))
	refused(t, p.a.qp.AttachMcast(gid(groupV6), 0), unix.ENOMEM, "1 groups")
	other := p.a.newQP(defaultCap())
	check(t, other.Activate(testQKey))
	if err := other.AttachMcast(gid(groupV4), 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("%v", err)
	}
}

// An attached queue pair is not destroyed, and gets nothing after it was detached.
func TestDetach(t *testing.T) {
	p := newWirePair(t)
	check(t, p.b.qp.AttachMcast(gid(groupV4), 0))
	refused(t, p.b.qp.Close(), unix.EBUSY, "detach")
	p.b.receive(0)
	check(t, p.b.qp.DetachMcast(gid(groupV4), 0))
	p.a.post(p.a.toGroup(groupV4, 9, 1))
	p.a.wait(1)
	eventually(t, "the drop", func() bool { return p.b.drops()["no_group"] == 1 })
	check(t, p.b.qp.Close())
}

// Through XDP: a group is steered while something is attached to it, else left to the host.
func TestGroupThroughXDP(t *testing.T) {
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
