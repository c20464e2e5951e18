// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

var order = binary.BigEndian

// requester is an endpoint of a client. roundTrip sends a request, and sleeps until the response has arrived.
type requester interface {
	roundTrip(request []byte) (answer []byte, err error)
	close() error
}

// requestTimeout is the time after which a message is lost, which ends the measurement with an error.
const requestTimeout = 2 * time.Second

// runClients runs the clients, each in a goroutine, for the job's duration.
func runClients(j harness.Job, clients []requester) (harness.Result, error) {
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	runtime.GC()
	each, failed := make([]client, len(clients)), make([]error, len(clients))
	meter, start := meterProcessor(), time.Now()
	var all sync.WaitGroup
	for i := range clients {
		each[i] = client{requester: clients[i], until: start.Add(j.Duration), pace: paceOf(j.Rate), request: make([]byte, j.Size)}
		all.Go(func() { failed[i] = each[i].run() })
	}
	all.Wait()
	elapsed := time.Since(start)
	var r harness.Result
	meter(&r)
	for _, c := range each {
		r.Messages += uint64(len(c.trips))
		r.RoundTrips = append(r.RoundTrips, c.trips[len(c.trips)/10:]...) // without the first 10 %, which warm up
	}
	r.PerSecond = float64(r.Messages) / elapsed.Seconds()
	for _, c := range clients {
		failed = append(failed, c.close())
	}
	return r, errors.Join(failed...)
}

// client sends requests for one key after the other.
type client struct {
	requester
	until   time.Time
	pace    time.Duration
	request []byte
	trips   []time.Duration
}

func (c *client) run() error {
	next := time.Now()
	for number := uint64(1); time.Now().Before(c.until); number++ {
		order.PutUint64(c.request, number)
		if len(c.request) > 8 {
			order.PutUint64(c.request[8:], number%1000)
		}
		if c.pace > 0 {
			next = next.Add(c.pace)
			sleepUntil(next)
		}
		start := time.Now()
		answer, err := c.roundTrip(c.request)
		if err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
		c.trips = append(c.trips, time.Since(start))
		if len(answer) != len(c.request) || !slices.Equal(answer[:min(16, len(answer))], c.request[:min(16, len(answer))]) {
			return fmt.Errorf("request %d: got the response to another request", number)
		}
	}
	return nil
}

// sleepUntil sleeps more precisely than time.Sleep, which rounds up to a millisecond in an idle process.
func sleepUntil(at time.Time) {
	if left := time.Until(at); left > 0 {
		t := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.Nanosleep(&t, nil)
	}
}

// machineTime returns the busy time of all processors since an arbitrary moment. The kernel measures idle time instead
// of sampling it, so that the result includes softirqs.
func machineTime() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	var idle int64 // in ticks of 10 ms; the fields after "cpu" are user nice system idle iowait
	for _, field := range strings.Fields(line)[4:6] {
		n, _ := strconv.ParseInt(field, 10, 64)
		idle += n
	}
	return time.Duration(runtime.NumCPU())*time.Since(began) - time.Duration(idle)*10*time.Millisecond
}

var began = time.Now()

// contextSwitches returns the number of context switches of the machine since its start.
func contextSwitches() (n uint64) {
	text, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "ctxt %d", &n); err == nil {
			break
		}
	}
	return n
}
