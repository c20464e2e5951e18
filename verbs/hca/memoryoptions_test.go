// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

func TestMTUsThatAHostRefuses(t *testing.T) {
	_, hosts, stations := newHosts(t, 1, 0)
	before := stations[0].port()
	for _, bytes := range []int{-1, 0, 67} {
		refused(t, hosts[0].SetMTU(bytes), verbs.ErrInvalid, "at least 68")
	}
	if stations[0].port() != before {
		t.Errorf("%+v, was %+v", stations[0].port(), before)
	}
	check(t, hosts[0].SetMTU(68))
	if got := stations[0].port(); got.State != verbs.PortDown || got.InterfaceMTU != 68 {
		t.Errorf("%+v", got)
	}
}

// Options that concern an interface and its kernel are rejected for a card without one; options of any card are
// accepted.
func TestOptionsWithoutAnInterface(t *testing.T) {
	for name, option := range map[string]Option{
		"InNamespace": InNamespace("/proc/self/ns/net"), "WithXDPMode": WithXDPMode(XDPGeneric), "WithSocketMode": WithSocketMode(SocketCopy),
		"WithFrames": WithFrames(64), "WithTuning": WithTuning(Tuning{DeferHardIRQs: 1}),
		"WithMembership": WithMembership(MembershipSocket), "WithStateDir": WithStateDir("/tmp"),
	} {
		_, _, err := OpenPair(nil, nil, option)
		refused(t, err, verbs.ErrInvalid, name, "omit it")
	}
	a, b, err := OpenPair(nil, nil, WithMTU(verbs.MTU1024), WithSpin(time.Millisecond), WithoutInline(), WithXDPMode(XDPAuto), WithSocketMode(SocketAuto), WithMembership(MembershipAuto))
	check(t, err)
	check(t, errors.Join(a.Close(), b.Close()))
}
