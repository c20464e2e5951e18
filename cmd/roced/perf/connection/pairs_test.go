// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
)

// TestAckTimeout: the queue pairs have the timeout of the options, and perftest's by default.
func TestAckTimeout(t *testing.T) {
	d, err := card.Connect(t.Context(), cmdtest.ServeMemory(t), "left", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	source, err := d.ChooseGID(card.AnyGID, netip.Addr{}, verbs.GID{})
	if err != nil {
		t.Fatal(err)
	}
	for ack, want := range map[time.Duration]uint8{0: 14, 4 * time.Second: 20} {
		p, err := Open(d, source, Options{Type: verbs.QPTypeRC, Operation: Send, Size: 64, Count: 1, Depth: 1, Timeout: time.Hour, Ack: ack})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Connect([]perftest.Keys{p.Keys(0)}, verbs.MTU1024)
		attr, _, queryErr := p.all[0].qp.Query()
		if err != nil || queryErr != nil || attr.Timeout != want {
			t.Errorf("%v: code %d, want %d; %v, %v", ack, attr.Timeout, want, err, queryErr)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
