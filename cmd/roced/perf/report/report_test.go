// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/protocol"
)

func TestLossesAddUp(t *testing.T) {
	before := []card.Counter{
		{Place: "engine", Name: "drop_no_receive", Packets: 5, Lost: true}, {Place: "link", Name: "rx_dropped", Packets: 1}, {Place: "engine", Name: "sent", Packets: 7},
	}
	after := []card.Counter{
		{Place: "engine", Name: "drop_no_receive", Packets: 9, Lost: true}, {Place: "link", Name: "rx_dropped", Packets: 4}, {Place: "engine", Name: "sent", Packets: 99},
	}
	changed := card.Since(before, after)
	b := NewBandwidthResult(64, 100, time.Second, protocol.Outcome{Received: 90, Elapsed: time.Second})
	b.AddDrops(nil, card.Losses(changed))
	if *b.Lost != 10 || b.Drops["server engine drop_no_receive"] != 4 || len(b.Drops) != 1 || *b.Unaccounted != 6 {
		t.Errorf("%+v", b)
	}
	if link := card.LinkLosses(changed); len(link) != 1 || link["link rx_dropped"] != 3 {
		t.Errorf("%v", link)
	}
	if *b.SentPerSecond != 100 || *b.ReceivedBytesSec != 90*64 {
		t.Errorf("rates %d/s, %d B/s", *b.SentPerSecond, *b.ReceivedBytesSec)
	}
}

// TestNothingArrived: the remedy is printed if no counter explains the loss.
func TestNothingArrived(t *testing.T) {
	for _, row := range []struct {
		sent, received uint64
		drops          map[string]uint64
		want           bool
	}{
		{100, 0, nil, true}, {100, 1, nil, false}, {0, 0, nil, false}, {100, 0, map[string]uint64{"engine drop_qkey": 100}, false},
	} {
		b := NewBandwidthResult(64, row.sent, time.Second, protocol.Outcome{Received: row.received})
		b.AddDrops(nil, row.drops)
		var text strings.Builder
		r := Report{Bandwidth: []BandwidthResult{b}}
		if err := r.writeNotes(&text); err != nil || strings.Contains(text.String(), "nothing arrived: check that firewalls") != row.want {
			t.Errorf("%+v: %v, %q", row, err, text.String())
		}
	}
}

// TestBandwidthNotes: lost packets are listed by place; empty places are omitted.
func TestBandwidthNotes(t *testing.T) {
	for _, row := range []struct {
		drops, link map[string]uint64
		want        string
	}{
		{nil, nil, "lost: elsewhere 10"},
		{nil, map[string]uint64{"link rx_dropped": 7}, "lost: elsewhere 10 (counted by the interfaces: server link rx_dropped 7)"},
		{map[string]uint64{"engine drop_no_receive": 4}, nil, "lost: server engine drop_no_receive 4, elsewhere 6"},
		{map[string]uint64{"engine drop_no_receive": 10}, nil, "lost: server engine drop_no_receive 10"},
	} {
		b := NewBandwidthResult(64, 100, time.Second, protocol.Outcome{Received: 90, Elapsed: time.Second})
		b.AddDrops(nil, row.drops)
		b.LinkDrops = BySide(nil, row.link)
		if got := b.losses(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	receiver := BandwidthResult{Size: 64, Drops: BySide(nil, map[string]uint64{"engine drop_duplicate": 15239})}
	if got := receiver.losses(); got != "dropped: server engine drop_duplicate 15,239" {
		t.Errorf("duplicates: %q", got)
	}
	all := NewBandwidthResult(64, 100, time.Second, protocol.Outcome{Received: 100, Elapsed: time.Second})
	if all.AddDrops(nil, nil); all.losses() != "" {
		t.Errorf("no loss: got %q", all.losses())
	}
}

// TestUnmeasuredIsNull: only measured values are numbers.
func TestUnmeasuredIsNull(t *testing.T) {
	b := BandwidthResult{Size: 64, NotMeasured: "not reported"}
	b.AddSent(10, time.Second)
	r := Report{Bandwidth: []BandwidthResult{b}}
	var out strings.Builder
	if err := r.writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"sent": 10`, `"received": null`, `"lost": null`, `"received_per_second": null`, `"unaccounted": null`, `"drops": null`, `"not_measured": "not reported"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
	out.Reset()
	if err := r.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "64 10 10 - - - - - - 64 bytes: not reported") {
		t.Errorf("the table: %s", out.String())
	}
}

// TestRetransmissions: each cause of a retransmission is reported.
func TestRetransmissions(t *testing.T) {
	p := &Packets{Sent: 1234, Again: 15, Timeouts: 1, Probes: 2, SequenceNAKs: 3, RNRNAKs: 4}
	want := "15 of 1,234 packets were retransmitted: 1 timeouts, 2 earlier because of late ACKs, 3 sequence NAKs, 4 RNR NAKs"
	if got := p.again(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Packets{Sent: 7}).again(); got != "" {
		t.Errorf("no retransmission: got %q", got)
	}
}

// TestCongestion checks the report of the sender, and of the receiver of marked packets.
func TestCongestion(t *testing.T) {
	for want, p := range map[string]*Packets{
		"": {Sent: 7},
		"slowed down by congestion: 1,200 CNPs received":                                                                       {CNPHandled: 1200},
		"34 packets received with a congestion mark (ECN), 5 CNPs sent to the peer":                                            {ECNMarked: 34, CNPSent: 5},
		"slowed down by congestion: 1 CNPs received; 2 packets received with a congestion mark (ECN), 3 CNPs sent to the peer": {CNPHandled: 1, ECNMarked: 2, CNPSent: 3},
	} {
		b := BandwidthResult{Size: 64, Packets: p}
		b.AddSent(10, time.Second)
		var out strings.Builder
		if err := (&Report{Bandwidth: []BandwidthResult{b}}).writeNotes(&out); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = "64 bytes: " + want + "\n"
		}
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	if text := (*Packets)(nil).congestion(); text != "" {
		t.Errorf("of datagrams: %q", text)
	}
}

// TestTrainsOfAServer: a server has no share of trains, since its packets are responses and not messages.
func TestTrainsOfAServer(t *testing.T) {
	b := BandwidthResult{Size: 64, Packets: &Packets{Sent: 4, InTrains: 1}}
	if got := b.inTrains(); got != cli.Dash {
		t.Errorf("a server's: %q", got)
	}
	if b.AddSent(10, time.Second); b.inTrains() != "25.00" {
		t.Errorf("a client's: %q", b.inTrains())
	}
}
