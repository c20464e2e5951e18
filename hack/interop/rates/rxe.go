// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// measureRXE runs perftest over Soft-RoCE. GID index 1 is the IPv4 address.
func measureRXE(ctx context.Context, l *testbed, m measurement) (figure, error) {
	program := perftest(m, l.options)
	served, said, err := l.runBoth(ctx, program, program+" "+rightAddress)
	if err != nil {
		return figure{}, err
	}
	if m.kind == roundTrip {
		half, err := column(said, m.size, latencyTypical)
		return figure{trip: time.Duration(2 * half * float64(time.Microsecond))}, err
	}
	if m.op != "" {
		millions, err := column(said, m.size, bandwidthRate)
		return figure{perSecond: 1e6 * millions}, err
	}
	return rxeRate(served, said, m.size)
}

// perftest returns the command. perftest's server waits forever for lost messages, except in its duration mode (-D), in
// which it counts messages in the middle half of the duration. That mode always spins.
func perftest(m measurement, o options) string {
	service, operation := "UD", "send"
	if m.op != "" {
		service, operation = "RC", m.op
	}
	common := fmt.Sprintf("-F -c %s -x 1 -s %d", service, m.size)
	if m.sleep {
		common += " -e"
	}
	switch {
	case m.kind == roundTrip:
		return fmt.Sprintf("ib_%s_lat %s -n %d", operation, common, o.trips)
	case m.op != "":
		return fmt.Sprintf("ib_%s_bw %s -n %d", operation, common, bulkMessages)
	case m.sleep:
		return fmt.Sprintf("ib_send_bw %s -n %d -r 4096", common, rxeMessages)
	}
	return fmt.Sprintf("ib_send_bw %s -D %d -r 4096", common, int(o.duration.Round(time.Second)/time.Second))
}

// rxeMessages is the number of messages of a sleeping measurement. They take some seconds.
const rxeMessages = 50000

// Columns of perftest's tables.
const (
	bandwidthCount = 1 // number of messages
	bandwidthRate  = 4 // million messages per second
	latencyTypical = 4 // median one-way latency in µs
)

func rxeRate(served, said string, size int) (figure, error) {
	sent, err := column(said, size, bandwidthCount)
	if err != nil {
		return figure{}, err
	}
	received, err := column(served, size, bandwidthCount)
	if err != nil {
		return figure{}, err
	}
	millions, err := column(served, size, bandwidthRate)
	return figure{perSecond: 1e6 * millions, lost: share(uint64(sent), uint64(received))}, err
}

// column reads a number of the line that begins with the size.
func column(text string, size, index int) (float64, error) {
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) > index && fields[0] == strconv.Itoa(size) {
			return strconv.ParseFloat(fields[index], 64)
		}
	}
	return 0, fmt.Errorf("no result of perftest in:\n%s", text)
}
