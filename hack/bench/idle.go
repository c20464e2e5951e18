// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// idle opens a card with a worker, and measures its processor time and memory without traffic.
func idle(j harness.Job) (harness.Result, error) {
	device, err := hca.Open(linkName, hca.InNamespace(j.Namespace))
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	time.Sleep(100 * time.Millisecond) // excludes the start-up
	before := processorTime()
	time.Sleep(j.Duration)
	used := processorTime() - before
	resident, err := residentBytes()
	if err != nil {
		return harness.Result{}, err
	}
	return harness.Result{CPU: used.Seconds() / j.Duration.Seconds(), Resident: resident}, device.Close()
}

func processorTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func residentBytes() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
