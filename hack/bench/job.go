package main

import (
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// job is what one child process does.
type job struct {
	Role       string // receive, send, pong, ping, with or without group, mixed or paced; generate, idle, join; serve, ask; of a daemon: run, connect, objects
	Variant    string // udp, udp gso, udp gso cut, raw, inline, worker; daemon, daemon spinning: a client; moderated: worker with a moderated CQ; ud inline, ud worker: the same through package ud; requests udp, requests worker; of connections: rc send, rc write, rc read; short send, short write, short read: the same through package rc; tcp, tcp unsegmented
	Namespace  string
	Size       int // payload, bytes
	Duration   time.Duration
	Count      int // round trips
	Receivers  int // in a group
	Clients    int // that ask a server, see requests.go
	MTU        int // of connections, bytes
	QueuePairs int // of connections
	Rate       int // requests a second; 0: as fast as answers come
	Sleep      bool
	Tuning     hca.Tuning
	Send       hca.SendMode
	Own, Peer  endpoint
	Socket     string // the daemon's, of its clients
}

// endpoint is one side of the wire.
type endpoint struct {
	Address string // IPv4
	MAC     string
	QPN     uint32      // told by a child that receives
	QPNs    []verbs.QPN // likewise, of one with several
}

// result is what a child has to say when it is done.
type result struct {
	Messages   uint64
	PerSecond  float64
	RoundTrips []time.Duration
	Resident   uint64        // bytes
	Elapsed    time.Duration // of joins
	CPU        float64       // share of one processor
	Speed      float64       // of the core, see coreSpeed
	Wakes      float64       // a second, see sleeper
	Used       time.Duration // of the processors, by this process
	Busy       time.Duration // of the processors, by the whole machine
	Switches   uint64        // of context, by the whole machine
	Losses     uint64        // messages, by the card's counters
	Refused    uint64        // of these, by the interface
}

// meter counts messages and the time between the first and the last.
type meter struct {
	messages    uint64
	first, last time.Time
}

// add counts n more messages that came together, now.
func (m *meter) add(n int) {
	m.last = time.Now()
	if m.messages == 0 {
		m.first = m.last
	}
	m.messages += uint64(n)
}

func (m *meter) result() result {
	r := result{Messages: m.messages}
	if elapsed := m.last.Sub(m.first).Seconds(); elapsed > 0 {
		r.PerSecond = float64(m.messages) / elapsed
	}
	return r
}
