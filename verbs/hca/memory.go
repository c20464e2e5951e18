//go:build linux

package hca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/hca/network"
)

// New makes a card on a host: one of a network in memory (memnet.Network.AddHost), or of any other network. The
// card owns the host, and closes it, also if New fails. Options that are about an interface and its kernel
// are refused. Without WithLogger nothing is logged.
func New(on network.Host, list ...Option) (*Card, error) {
	o := newOptions(append([]Option{WithLogger(slog.New(slog.DiscardHandler))}, list...))
	if err := o.checkApart(); err != nil {
		return nil, fmt.Errorf("open %s: %w", on.Name(), errors.Join(err, on.Link().Close(), on.Close()))
	}
	card, err := newCard(on, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", on.Name(), err)
	}
	return card, nil
}

// OpenPair makes the cards of two hosts on a network in memory of their own.
func OpenPair(a, b []netip.Addr, options ...Option) (*Card, *Card, error) {
	n := memnet.New(0)
	var cards [2]*Card
	for i, addresses := range [][]netip.Addr{a, b} {
		host, err := n.AddHost([]string{"memory-a", "memory-b"}[i], addresses...)
		if err == nil {
			cards[i], err = New(host, options...)
		}
		if err != nil {
			return nil, nil, errors.Join(err, n.Close())
		}
	}
	return cards[0], cards[1], nil
}

// checkApart is check for a card that is on no interface: it refuses what is about one and its kernel too.
func (o *options) checkApart() error {
	if _, err := o.check(); err != nil {
		return err
	}
	for _, option := range []struct {
		name string
		used bool
	}{
		{"InNamespace", o.namespace != ""},
		{"WithXDPMode", o.xdp != "" && o.xdp != XDPAuto},
		{"WithSocketMode", o.socket != "" && o.socket != SocketAuto},
		{"WithSendMode", o.send != "" && o.send != SendAuto},
		{"WithFrames", o.frames != 0},
		{"WithTuning", o.tuning != Tuning{}},
		{"WithMembership", o.membership != "" && o.membership != MembershipAuto},
		{"WithStateDir", o.stateDir != ""},
	} {
		if option.used {
			return fmt.Errorf("%w: %s means nothing without an interface; leave it out", verbs.ErrInvalid, option.name)
		}
	}
	return nil
}
