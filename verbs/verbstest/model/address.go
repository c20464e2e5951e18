// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Steps with address handles and groups.

// modelGroups contains the groups that the steps attach to and send to.
var modelGroups = []netip.Addr{rig.GroupV4, rig.OtherGroup, rig.GroupV6}

// address returns a reachable address: one of either card or of a group.
func (d dice) address() netip.Addr {
	if d.chance(3) {
		return modelGroups[d.random.IntN(len(modelGroups))]
	}
	return d.sides[d.random.IntN(2)].end.Addresses()[d.random.IntN(3)]
}

func (s *side) createAH() {
	pd := s.dice().likelyPD()
	if pd == nil || len(s.ahs) == fewAHs {
		return
	}
	attr, source := s.dice().anyRoute()
	ah, err := pd.CreateAH(noTimeout, attr)
	s.want("create AH", err, 0)
	pd.model.users++
	s.ahs = append(s.ahs, &playedAH{AH: ah, model: &modelAH{pd: pd.model, source: source, route: attr.GRH}})
	s.note(s, "create AH to %v", attr.GRH.DGID)
}

// anyRoute returns a route to an address with random header fields, and its source GID.
func (d dice) anyRoute() (*verbs.AHAttr, verbs.GID) {
	attr := d.device().Route(d.address())
	attr.GRH.TrafficClass, attr.GRH.HopLimit, attr.GRH.FlowLabel = uint8(d.random.Uint32()), uint8(d.random.Uint32()), d.random.Uint32()&0xFFFFF
	source, err := d.ctx.QueryGID(1, attr.GRH.SGIDIndex)
	d.want("query GID", err, 0)
	return attr, source.GID
}

// refuseAH creates address handles with invalid attributes.
func (s *side) refuseAH() {
	pd := one(s, s.pds)
	if pd == nil {
		return
	}
	s.note(s, "create AH, bad")
	refuse := func(what string, want unix.Errno, spoil func(a *verbs.AHAttr)) {
		attr := s.device().Route(s.end.IPv4)
		spoil(attr)
		_, err := pd.CreateAH(noTimeout, attr)
		s.want("AH: "+what, err, want)
	}
	refuse("no destination", unix.EINVAL, func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{} })
	refuse("port 2", unix.EINVAL, func(a *verbs.AHAttr) { a.Port = 2 })
	refuse("unused GID", unix.ENODATA, func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.device().EmptyLine() })
	refuse("no such GID", unix.EINVAL, func(a *verbs.AHAttr) { a.GRH.SGIDIndex = 1000 })
	refuse("source of another IP version", unix.EINVAL, func(a *verbs.AHAttr) { a.GRH.DGID = rig.GID(s.end.IPv6) })
	refuse("no route", unix.EHOSTUNREACH, func(a *verbs.AHAttr) { a.GRH.DGID = rig.GID(s.pair.Unreachable) })
}

// usedAH returns a handle that an unsent request uses, or nil.
func (s *side) usedAH() *playedAH {
	for _, q := range s.qps {
		for _, a := range s.ahs {
			if len(q.model.sends) > 0 && q.model.sends[0].ah == a.model {
				return a
			}
		}
	}
	return nil
}

func (s *side) closeAH() {
	a := s.usedAH()
	if a == nil || a.model.closed {
		a = one(s, s.ahs)
	}
	if a == nil {
		return
	}
	s.note(s, "close AH to %v", a.model.route.DGID)
	if a.model.closed {
		s.wantIf("close AH again", a.Close(), false)
		s.ahs = remove(s.ahs, a)
		return
	}
	s.want("close AH", a.Close(), 0)
	a.model.closed = true
	a.model.pd.users--
}

// group returns the GID of a group, rarely an invalid one, and the MLID 0, rarely another one.
func (d dice) group() (verbs.GID, verbs.MLID) {
	mlid := verbs.MLID(0)
	if d.chance(8) {
		mlid = 1
	}
	if d.chance(12) {
		return rig.GID(d.end.IPv4), mlid
	}
	return rig.GID(modelGroups[d.random.IntN(len(modelGroups))]), mlid
}

func (s *side) attach() {
	q := one(s, s.qps)
	if q == nil {
		return
	}
	mgid, mlid := s.dice().group()
	s.note(s, "attach %s to %v, MLID %d", q, mgid, mlid)
	s.wantIf("attach", q.AttachMcast(mgid, mlid), !q.closed && q.model.attach(mgid, mlid))
}

func (s *side) detach() {
	q := one(s, s.qps)
	if q == nil {
		return
	}
	mgid, mlid := s.dice().group()
	s.note(s, "detach %s from %v, MLID %d", q, mgid, mlid)
	s.wantIf("detach", q.DetachMcast(mgid, mlid), !q.closed && q.model.detach(mgid, mlid))
}

func (a *playedAH) String() string {
	if a == nil {
		return "no AH"
	}
	return fmt.Sprintf("AH to %v, closed %t", a.model.route.DGID, a.model.closed)
}
