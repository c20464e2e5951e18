package main

import (
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, row := range []struct {
		times   []time.Duration
		percent float64
		want    time.Duration
	}{
		{nil, 50, 0},
		{hundred[:1], 0, 1},
		{hundred[:1], 99.9, 1},
		{hundred[:2], 50, 1},
		{hundred[:3], 50, 2},
		{hundred, 0, 1},
		{hundred, 50, 50},
		{hundred, 90, 90},
		{hundred, 99, 99},
		{hundred, 99.9, 100},
		{hundred, 100, 100},
	} {
		if got := percentile(row.times, row.percent); got != row.want {
			t.Errorf("%v%% of %d: %d, want %d", row.percent, len(row.times), got, row.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d): %s, want %s", n, got, want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	if got := perSecond(500, time.Second/2); got != 1000 {
		t.Errorf("500 in half a second: %d/s", got)
	}
	if got := perSecond(5, 0); got != 0 {
		t.Errorf("5 in no time: %d/s", got)
	}
}

func TestProgressLine(t *testing.T) {
	start := time.Unix(1000, 0)
	p := &progress{label: "bandwidth of 64 bytes", start: start}
	p.add(3000)
	line := p.line(start.Add(3 * time.Second))
	for _, want := range []string{"\r", "bandwidth of 64 bytes", "3s", "3,000 messages", "1,000/s"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q does not say %q", line, want)
		}
	}
}

func TestProgressNeedsATerminal(t *testing.T) {
	p := startProgress(&strings.Builder{}, "x")
	if p != nil {
		t.Error("progress in a buffer")
	}
	p.add(1)
	p.end()
}

func TestLossesAddUp(t *testing.T) {
	before := []counter{{"engine", "drop_no_receive", 5, true}, {"link", "rx_dropped", 1, false}, {"engine", "sent", 7, false}}
	after := []counter{{"engine", "drop_no_receive", 9, true}, {"link", "rx_dropped", 4, false}, {"engine", "sent", 99, false}}
	changed := since(before, after)
	b := newBandwidthResult(64, 100, time.Second, outcome{Received: 90, Elapsed: time.Second})
	b.addDrops(nil, losses(changed))
	if *b.Lost != 10 || b.Drops["server engine drop_no_receive"] != 4 || len(b.Drops) != 1 || *b.Unaccounted != 6 {
		t.Errorf("%+v", b)
	}
	if link := linkLosses(changed); len(link) != 1 || link["link rx_dropped"] != 3 {
		t.Errorf("%v", link)
	}
	if *b.SentPerSecond != 100 || *b.ReceivedBytesSec != 90*64 {
		t.Errorf("rates %d/s, %d B/s", *b.SentPerSecond, *b.ReceivedBytesSec)
	}
}

// TestBandwidthNotes: what is lost has a place, and an empty list is no place.
func TestBandwidthNotes(t *testing.T) {
	for _, row := range []struct {
		drops, link map[string]uint64
		want        string
	}{
		{nil, nil, "lost: elsewhere 10"},
		{nil, map[string]uint64{"link rx_dropped": 7}, "lost: elsewhere 10 (the interfaces count: server link rx_dropped 7)"},
		{map[string]uint64{"engine drop_no_receive": 4}, nil, "lost: server engine drop_no_receive 4, elsewhere 6"},
		{map[string]uint64{"engine drop_no_receive": 10}, nil, "lost: server engine drop_no_receive 10"},
	} {
		b := newBandwidthResult(64, 100, time.Second, outcome{Received: 90, Elapsed: time.Second})
		b.addDrops(nil, row.drops)
		b.LinkDrops = bySide(nil, row.link)
		if got := b.losses(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	all := newBandwidthResult(64, 100, time.Second, outcome{Received: 100, Elapsed: time.Second})
	if all.addDrops(nil, nil); all.losses() != "" {
		t.Errorf("nothing was lost: %q", all.losses())
	}
}

// TestUnmeasuredIsNull: a number in the report is one that was measured.
func TestUnmeasuredIsNull(t *testing.T) {
	b := bandwidthResult{Size: 64, NotMeasured: "nobody told"}
	b.addSent(10, time.Second)
	r := report{Bandwidth: []bandwidthResult{b}}
	var out strings.Builder
	if err := r.writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"sent": 10`, `"received": null`, `"lost": null`, `"received_per_second": null`, `"unaccounted": null`, `"drops": null`, `"not_measured": "nobody told"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
	out.Reset()
	if err := r.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "64 10 10 - - - - - 64 bytes: nobody told") {
		t.Errorf("the table: %s", out.String())
	}
}

// TestCountersHaveOneList: what commands say about a counter is about one that there is.
func TestCountersHaveOneList(t *testing.T) {
	left, _ := wireHosts(t)
	all, err := left.cardCounters()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range all {
		if name := c.Place + " " + c.Name; known[name] {
			t.Errorf("%s is there twice", name)
		} else {
			known[name] = true
		}
	}
	names := []string{"engine sent", "engine delivered"} // demo's balance
	for _, m := range mishaps {
		names = append(names, m.place+" "+m.name)
	}
	for _, h := range dropHints {
		names = append(names, h.drop)
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("there is no counter %q", name)
		}
	}
}
