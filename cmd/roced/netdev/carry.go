// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/netdev"
)

// carry carries packets until ctx is done.
func carry(ctx context.Context, d *card.Device, o *options) (err error) {
	if o.GIDIndex != card.AnyGID {
		entry, err := d.ChooseGID(o.GIDIndex, netip.Addr{}, verbs.GID{})
		if err != nil {
			return err
		}
		o.device.Source = entry.GID.Addr()
	}
	var dev *netdev.Device
	if err := hca.RunIn(o.Path(), func() (err error) {
		dev, err = netdev.Alloc(d.Context, card.Port, o.name, o.device)
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	if err := dev.SetID(o.id); err != nil {
		return err
	}
	if err := dev.Init(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o.out, "interface %s, MTU %d: network %d, group %v, Q_Key %v, over %s\n",
		dev.Name(), dev.MTU(), o.id, dev.Group(), dev.QKey(), d.Attr.Name); err != nil {
		return err
	}
	if err := dev.Run(ctx); err != nil {
		return err
	}
	return printTotals(o.out, dev.Stats())
}

// printTotals prints the numbers of packets carried and dropped.
func printTotals(out io.Writer, s netdev.Stats) error {
	var dropped []string
	for reason, n := range s.Drops {
		dropped = append(dropped, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(dropped)
	if len(dropped) == 0 {
		dropped = []string{"none"}
	}
	_, err := fmt.Fprintf(out, "sent %d packets (%d bytes), received %d (%d bytes); dropped: %s\n",
		s.Sent, s.SentBytes, s.Received, s.ReceivedBytes, strings.Join(dropped, ", "))
	return err
}
