// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// kind is the kind of a measurement.
type kind int

const (
	rate      kind = iota // received messages per second
	roundTrip             // latency of a round trip
)

// measurement is one line of the report.
type measurement struct {
	name  string
	kind  kind
	size  int    // payload, bytes
	op    string // operation of a reliable connection: send or write; empty for datagrams
	sleep bool   // roced and rxe sleep instead of spinning while they wait; UDP rates always sleep
}

var measurements = []measurement{
	{"rate 64, sleeping", rate, 64, "", true},
	{"rate 1024, sleeping", rate, 1024, "", true},
	{"rate 64, spinning", rate, 64, "", false},
	{"rate 1024, spinning", rate, 1024, "", false},
	{"round trip 64, sleeping", roundTrip, 64, "", true},
	{"round trip 1024, sleeping", roundTrip, 1024, "", true},
	{"round trip 64, spinning", roundTrip, 64, "", false},
	{"round trip 1024, spinning", roundTrip, 1024, "", false},
	{"RC SEND 64 KiB, sleeping", rate, 1 << 16, "send", true},
	{"RC SEND 64 KiB, spinning", rate, 1 << 16, "send", false},
	{"RC WRITE 64 KiB, spinning", rate, 1 << 16, "write", false},
	{"RC round trip 64, sleeping", roundTrip, 64, "send", true},
	{"RC round trip 64, spinning", roundTrip, 64, "send", false},
}

// figure is the result of one measurement of one contender.
type figure struct {
	perSecond float64       // received messages
	lost      float64       // share of sent messages
	trip      time.Duration // median round trip
}

// contender is one of the compared transports.
type contender struct {
	name    string
	rxe     bool // needs Soft-RoCE on the card
	rc      bool // has reliable connections
	measure func(context.Context, *testbed, measurement) (figure, error)
}

var contenders = []contender{
	{"udp", false, false, measureUDP},
	{"rxe", true, true, measureRXE},
	{"roced", false, true, roced("auto")},
	{"roced-udp", false, true, roced("udp")},
}

// bulkMessages is the number of messages over a connection. They take some seconds.
const bulkMessages = 400
