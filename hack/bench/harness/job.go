// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// Job describes the work of one child process.
type Job struct {
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
	Port       int // of TCP, over which connections meet; 0: the usual one
	Workers    int // of a daemon's card; 0: one
	Rate       int // requests a second; 0: as fast as answers come
	Sleep      bool
	Tuning     hca.Tuning
	Send       hca.SendMode
	Network    hca.Network
	Own, Peer  Endpoint
	Socket     string // the daemon's, of its clients
}

// Endpoint is one side of the wire.
type Endpoint struct {
	Address string // IPv4
	MAC     string
	QPN     uint32      // told by a child that receives
	QPNs    []verbs.QPN // likewise, of one with several
}

// Result is the output of a child at its end.
type Result struct {
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

// Meter counts messages and the time between the first and the last.
type Meter struct {
	Messages    uint64
	First, Last time.Time
}

// Add counts n more messages that came together, now.
func (m *Meter) Add(n int) {
	m.Last = time.Now()
	if m.Messages == 0 {
		m.First = m.Last
	}
	m.Messages += uint64(n)
}

func (m *Meter) Result() Result {
	r := Result{Messages: m.Messages}
	if elapsed := m.Last.Sub(m.First).Seconds(); elapsed > 0 {
		r.PerSecond = float64(m.Messages) / elapsed
	}
	return r
}
