// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"golang.org/x/sys/unix"
)

func TestGreetingChecked(t *testing.T) {
	for mtu, good := range map[int]bool{256: true, 1024: true, 4096: true, 0: false, -5: false, 255: false, 4097: false, math.MaxInt: false} {
		g := Greeting{Server: card.Side{Device: "a\x1b", Address: "b\n", MTU: mtu, XDP: "c\r", AFXDP: "d\x00"}}
		side, err := g.Checked()
		if good && (err != nil || side != card.Side{Device: `a\x1b`, Address: `b\n`, MTU: mtu, XDP: `c\r`, AFXDP: `d\x00`}) {
			t.Errorf("MTU %d: %+v, %v", mtu, side, err)
		}
		if !good && (!errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), fmt.Sprintf("invalid value, server.mtu %d", mtu))) {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
}

func TestOutcomeCheck(t *testing.T) {
	const sent, took = 1000, time.Second
	many := map[string]uint64{}
	for i := range maxNames + 1 {
		many[fmt.Sprint(i)] = 1
	}
	for _, row := range []struct {
		o    Outcome
		want string
	}{
		{Outcome{}, ""},
		{Outcome{Received: sent, Elapsed: took}, ""},
		{Outcome{Received: 32, Elapsed: 0}, ""},
		{Outcome{Received: sent, Elapsed: longest(took)}, ""},
		{Outcome{Drops: map[string]uint64{"a": maxPackets}, Link: map[string]uint64{"b": maxPackets}}, ""},
		{Outcome{Received: sent + 1}, "received 1,001 of 1,000 sent"},
		{Outcome{Elapsed: -1}, "elapsed_ns -1 "},
		{Outcome{Elapsed: math.MinInt64}, "elapsed_ns -9223372036854775808 "},
		{Outcome{Elapsed: longest(took) + 1}, "elapsed_ns 12000000001 "},
		{Outcome{Elapsed: math.MaxInt64}, "elapsed_ns 9223372036854775807 "},
		{Outcome{Received: sent, Elapsed: 1}, "elapsed_ns 1 for 1,000 messages"},
		{Outcome{Drops: map[string]uint64{"a\n": math.MaxUint64}}, `drops a\n 18,446,744,073,709,551,615`},
		{Outcome{Drops: map[string]uint64{"a": maxPackets, "b": maxPackets}}, "drops "},
		{Outcome{Drops: many}, "drops of 1001 names"},
		{Outcome{Link: map[string]uint64{"c": maxPackets + 1}}, "link_drops c "},
	} {
		err := row.o.Check(sent, took)
		if row.want == "" && err != nil {
			t.Errorf("%+v: %v", row.o, err)
		}
		if row.want != "" && (!errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), "the peer sent an invalid value, "+row.want)) {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
}

// TestDropsBecomePrintable: making names printable keeps the sum of packets, and keeps unknown drops unknown.
func TestDropsBecomePrintable(t *testing.T) {
	long := strings.Repeat("x", 1000)
	o := Outcome{Drops: map[string]uint64{"a\x1b": 1, long + "1": 2, long + "2": 3}}
	if err := o.Check(0, 0); err != nil || o.Drops[`a\x1b`] != 1 || len(o.Drops) != 2 || card.Sum(o.Drops) != 6 || o.Link != nil {
		t.Errorf("%v, %v", o, err)
	}
}
