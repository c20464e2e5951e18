// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// around is a card, and a program on it, with the answers that a test sets. Nothing is sent.
type around struct {
	ended   chan struct{}
	err     error // of the program
	refuses error // of joins
	left    []provider.Handle
}

func (a *around) Name() string                               { return "eth0" }
func (a *around) Own(address netip.Addr) (netip.Addr, error) { return address, nil }
func (a *around) Local(address netip.Addr) bool              { return address.IsLoopback() }
func (a *around) OneMachine() bool                           { return false }
func (a *around) GIDIndex(wire.GID) (int, error)             { return 0, nil }
func (a *around) GUID() uint64                               { return 1 }
func (a *around) ActiveMTU() wire.MTU                        { return wire.MTU1024 }
func (a *around) AHAttr(ends paths.Ends, _ uint8) verbs.AHAttr {
	return verbs.AHAttr{GRH: verbs.GlobalRoute{DGID: ends.Dest}}
}
func (a *around) FindEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	return source, dest, nil
}

func (a *around) LoopbackEnd(from, to netip.Addr) (netip.Addr, error) {
	return address("10.0.0.1"), nil
}

func (a *around) Payer() *quota.Quota   { return nil }
func (a *around) Done() <-chan struct{} { return a.ended }
func (a *around) Err() error            { return a.err }
func (a *around) Faulted(error)         {}

func (a *around) PortRules() network.PortRules { return network.DefaultPortRules() }

// Prepare returns a membership whose handle is 9.
func (a *around) Prepare(r provider.JoinMulticastRequest) (Join, error) { return &joins{a, r}, nil }

func (a *around) Leave(r provider.LeaveMulticastRequest) error {
	a.left = append(a.left, r.Membership)
	return nil
}

type joins struct {
	*around
	request provider.JoinMulticastRequest
}

func (j *joins) Reserve() error { return j.refuses }
func (j *joins) Finish() (provider.JoinMulticastGrant, error) {
	return provider.JoinMulticastGrant{Membership: 9, MGID: wire.GIDFromAddr(j.request.Group)}, nil
}

// newSession returns a session with a channel, on a card whose QP 1 is not open.
func newSession(t *testing.T) (*Session, *around, provider.Handle) {
	t.Helper()
	a := &around{ended: make(chan struct{})}
	m := NewManager(Config{Card: a, Ended: a.ended, Ports: newPorts(), Log: slog.New(slog.DiscardHandler)})
	s := m.NewSession(SessionConfig{
		Program: a, Groups: a, Limits: quota.Limits{EventChannels: 10, IDs: 10},
		MayBindService: func() bool { return false }, BindPrivilege: "a privilege",
	})
	channel, err := s.channels.create()
	check(t, err)
	t.Cleanup(func() {
		s.Shut()
		check(t, channel.Events.Close())
	})
	return s, a, channel.Channel
}

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

var check, refused = errtest.Check, errtest.Refused
