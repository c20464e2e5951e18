package hca

import (
	"fmt"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/verbs"
)

// Statistics is where a device's packets went. A packet that came in is in one
// counter of Steering, of Socket, or of Engine: those that Steering redirected
// are in Socket if the socket lost them, else in Engine. What each reason means is said at
// datapath's Drop and bpf's Verdict. Of a packet that was to go out "sent" tells, and the reason
// too if it did not go.
type Statistics struct {
	Engine   datapath.Counters
	Steering bpf.Counters
	Socket   xsk.Statistics
	// TooBig counts packets that routers sent back word of: longer than a link on the way takes.
	TooBig uint64
}

// Statistics reads all counters, also of a device that has failed; of one that is closed
// they are what they were then. They are not read at one instant.
func (card *Card) Statistics() (Statistics, error) {
	card.mu.Lock()
	defer card.mu.Unlock()
	if card.final != nil {
		return *card.final, nil
	}
	return card.readStatistics()
}

func (card *Card) readStatistics() (s Statistics, err error) {
	s.Engine, s.TooBig = card.engine.Counters(), card.tooBig.packets.Load()
	if s.Steering, err = card.steering.Counters(); err != nil {
		return s, err
	}
	if link, ok := card.link.(*link.XDP); ok {
		s.Socket, err = link.Statistics()
	}
	return s, err
}

// Counter is one number of a device's statistics.
type Counter = verbs.Counter

func count(place, name string, value uint64, lost bool) Counter {
	return Counter{Place: place, Name: name, Value: value, Lost: lost}
}

// Counters implements verbs.CounterReader: what Card.Statistics gives, with names.
func (s *Session) Counters() ([]Counter, error) {
	statistics, err := s.card.Statistics()
	if err != nil {
		return nil, err
	}
	return statistics.All(), nil
}

// All is all numbers with their names, always in the same order.
func (s *Statistics) All() (all []Counter) {
	for v, n := range s.Steering {
		all = append(all, count("XDP", bpf.Verdict(v).String(), n, bpf.Verdict(v) >= bpf.DropOptions))
	}
	all = append(all,
		count("socket", "rx_dropped", s.Socket.RxDropped, true),
		count("socket", "rx_ring_full", s.Socket.RxRingFull, true),
		count("socket", "malformed", s.Socket.Malformed, true),
	)
	all = append(all, count("routers", "too_big", s.TooBig, false))
	e := &s.Engine
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"sent", e.Sent}, {"sent_bytes", e.SentBytes}, {"received", e.Received}, {"received_bytes", e.ReceivedBytes},
		{"copies", e.Copies}, {"loopback", e.Loopback}, {"delivered", e.Delivered}, {"delivered_bytes", e.DeliveredBytes},
	} {
		all = append(all, count("engine", c.name, c.value, false))
	}
	for _, reason := range datapath.Reasons() {
		all = append(all, count("engine", "drop_"+reason.String(), e.Drops[reason], true))
	}
	return all
}

// String lists the numbers that are not 0, as "engine sent 3, engine drop_qkey 1".
func (s Statistics) String() string {
	var parts []string
	for _, c := range s.All() {
		if c.Value != 0 {
			parts = append(parts, fmt.Sprintf("%s %s %d", c.Place, c.Name, c.Value))
		}
	}
	if len(parts) == 0 {
		return "all counters are 0"
	}
	return strings.Join(parts, ", ")
}
