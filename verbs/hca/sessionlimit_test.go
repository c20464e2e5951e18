// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// A session has its own limits and privileges, and reports them.
func TestLimitsOfASession(t *testing.T) {
	w := newWirePair(t)
	allowed := false
	session, err := w.a.device.NewSession(SessionConfig{
		Limits:     Limits{PDs: 2, MRs: 1, CQs: 2, SRQs: 1, QPs: 1, AHs: 1, Memberships: 1, Attachments: 1, IDs: 1, EventChannels: 1, Memory: 1 << 20},
		Privileged: func() bool { return allowed },
	})
	check(t, err)
	ctx, err := verbs.Open(session)
	check(t, err)
	attr, err := ctx.QueryDevice()
	check(t, err)
	if attr.MaxPD != 2 || attr.MaxMR != 1 || attr.MaxCQ != 2 || attr.MaxQP != 1 || attr.MaxSRQ != 1 || attr.MaxAH != 1 || attr.MaxTotalMcastQPAttach != 1 {
		t.Errorf("%+v", attr)
	}
	pd, err := ctx.AllocPD()
	check(t, err)
	_, err = pd.AllocMR(2<<20, 0)
	refused(t, err, unix.ENOMEM, "memory", "1048576")
	_, err = pd.AllocMR(4096, 0)
	check(t, err)
	_, err = pd.AllocMR(4096, 0)
	refused(t, err, verbs.ErrLimit, "1 MRs")
	cq, err := ctx.CreateCQ(8)
	check(t, err)
	_, err = pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1})
	check(t, err)
	_, err = pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1})
	refused(t, err, verbs.ErrLimit, "1 SRQs")
	init := &verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()}
	qp, err := pd.CreateQP(init)
	check(t, err)
	_, err = pd.CreateQP(init)
	refused(t, err, verbs.ErrLimit, "1 QPs")
	refused(t, qp.Activate(0x80000001), verbs.ErrPermission)
	allowed = true
	check(t, qp.Activate(0x80000001))
	check(t, qp.AttachMcast(gid(groupV4), 0))
	refused(t, qp.AttachMcast(gid(groupV6), 0), verbs.ErrLimit)
	_, err = ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember)
	check(t, err)
	_, err = ctx.JoinMulticast(address(groupV6), verbs.JoinFullMember)
	refused(t, err, verbs.ErrLimit, "1 memberships")
	events, err := provider.Do(session, provider.CreateEventChannel, provider.None{})
	check(t, err)
	check(t, events.Events.Close())
	_, err = provider.Do(session, provider.CreateEventChannel, provider.None{})
	refused(t, err, verbs.ErrLimit, "1 event channels")
	id := provider.CreateIDRequest{Channel: events.Channel, PortSpace: wire.PortSpaceUDP}
	_, err = provider.Do(session, provider.CreateID, id)
	check(t, err)
	_, err = provider.Do(session, provider.CreateID, id)
	refused(t, err, verbs.ErrLimit, "1 ids")
	w.a.another(SessionConfig{}) // other sessions are not affected
}

// A negative limit is refused.
func TestLimitBelowZero(t *testing.T) {
	w := newWirePair(t)
	_, err := w.a.device.NewSession(SessionConfig{Limits: Limits{PDs: -1}})
	refused(t, err, unix.EINVAL, "-1")
}

// A session serves one Context.
func TestClaimOfASession(t *testing.T) {
	w := newWirePair(t)
	_, err := verbs.Open(w.a.device)
	refused(t, err, unix.EBUSY, "NewSession")
	session, err := w.a.device.NewSession(SessionConfig{})
	check(t, err)
	_, err = verbs.Open(session)
	check(t, err)
	_, err = verbs.Open(session)
	refused(t, err, verbs.ErrBusy)
}

// The number of a card's sessions is limited, and the error names the limit.
func TestManySessions(t *testing.T) {
	w := newWirePair(t)
	for range maxSessions - 1 {
		_, err := w.a.device.NewSession(SessionConfig{})
		check(t, err)
	}
	_, err := w.a.device.NewSession(SessionConfig{})
	refused(t, err, verbs.ErrLimit, fmt.Sprint(maxSessions))
	w.b.receive(1)
	w.a.post(w.a.send(1, w.a.ah("10.0.0.2"), w.b, w.a.piece(0, 3)))
	w.b.wait(1)
}
