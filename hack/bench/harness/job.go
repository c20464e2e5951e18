// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// Job describes the work of one child process.
type Job struct {
	Role       string // receive, send, pong, ping, with or without group, mixed or paced; generate, idle, join; serve, request; of a daemon: run, connect, objects
	Variant    string // udp, udp gso, udp gso cut, raw, inline, worker; daemon, daemon spinning: a client; moderated: worker with a moderated CQ; ud inline, ud worker: the same through package ud; requests udp, requests worker; of connections: rc send, rc write, rc read; short send, short write, short read: the same through package rc; tcp, tcp unsegmented
	Namespace  string
	Size       int // payload, bytes
	Duration   time.Duration
	Count      int // round trips
	Receivers  int // number of receivers in a group
	Clients    int // clients of a server, see requests.go
	MTU        int // path MTU of connections, bytes
	QueuePairs int // number of connections
	Port       int // TCP port for the exchange of queue pair numbers; 0 means the default
	Workers    int // workers of a daemon's card; 0 means one
	Rate       int // requests per second; 0 means one after the other without a pause
	Sleep      bool
	Tuning     hca.Tuning
	Send       hca.SendMode
	Network    hca.Network
	Own, Peer  Endpoint
	Socket     string // socket of the daemon that a client connects to
}

// Endpoint is one side of the wire.
type Endpoint struct {
	Address string // IPv4
	MAC     string
	QPN     uint32      // queue pair of a receiving child
	QPNs    []verbs.QPN // the same, if it has several
}

// Result is the output of a child at its end.
type Result struct {
	Messages   uint64
	PerSecond  float64
	RoundTrips []time.Duration
	Resident   uint64        // bytes
	Elapsed    time.Duration // time of all joins
	CPU        float64       // share of one processor
	Speed      float64       // speed of the core, see coreSpeed
	Wakes      float64       // wake-ups per second, see sleeper
	Used       time.Duration // processor time of this process
	Busy       time.Duration // processor time of the whole machine
	Switches   uint64        // context switches of the whole machine
	Losses     uint64        // lost messages, by the card's counters
	Refused    uint64        // losses that the interface refused
}

// Meter counts messages and the time between the first and the last.
type Meter struct {
	Messages    uint64
	First, Last time.Time
}

// Add counts n messages that arrived together now.
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
