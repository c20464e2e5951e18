// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/hack/bench/harness"
)

// These parts compare programs that use a card through a daemon on each side with programs that have their own cards,
// and with UDP.

// socketsFor returns the daemons' sockets for the receiver and the sender of a variant.
func (b *bench) socketsFor(variant string) (receiver, sender string) {
	if !strings.HasPrefix(variant, "daemon") {
		return "", ""
	}
	return b.sockets[1], b.sockets[0]
}

// withDaemons calls do while a daemon runs on each side. No other program has a card at that time.
func (b *bench) withDaemons(do func(left, right *harness.Child) error) error {
	folder, err := os.MkdirTemp("", "roced-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var running [2]*harness.Child
	for i, ns := range []string{b.a.Path(), b.b.Path()} {
		b.sockets[i] = filepath.Join(folder, strconv.Itoa(i))
		if running[i], err = harness.Start(harness.Job{Role: "run", Variant: "daemon", Namespace: ns, Socket: b.sockets[i], Workers: b.workers}); err != nil {
			return err
		}
	}
	err = do(running[0], running[1])
	for _, c := range running {
		if _, stopped := c.Finish(true); err == nil {
			err = stopped
		}
	}
	return err
}

// measureVariant runs one measurement, with daemons if the variant needs them.
func (b *bench) measureVariant(variant string, do func() error) error {
	if !strings.HasPrefix(variant, "daemon") {
		return do()
	}
	return b.withDaemons(func(_, _ *harness.Child) error { return do() })
}

// daemonRates also measures a TCP stream, which it counts in parts of the message length.
func (b *bench) daemonRates() error {
	for _, size := range []int{64, 1024} {
		err := b.InTurns("daemon oneway", size, "", []string{"udp", "tcp", "inline", "worker", "daemon", "daemon spinning"}, func(variant string) (rate float64, err error) {
			if variant == "tcp" {
				return b.connectionRate(variant, size, 1)
			}
			err = b.measureVariant(variant, func() (err error) {
				rate, err = b.oneWayRate(harness.Job{Variant: variant, Size: size})
				return err
			})
			return rate, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) daemonTrips() error {
	for _, kind := range []tripKind{
		{"daemon roundtrip spinning", false, []string{"udp", "inline", "daemon spinning"}},
		{"daemon roundtrip sleeping", true, []string{"udp", "worker", "daemon"}},
	} {
		for _, variant := range kind.variants {
			one := tripKind{kind.name, kind.sleep, []string{variant}}
			if err := b.measureVariant(variant, func() error { return b.trip([]tripKind{one}) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupClients is the number of processes in a group.
const groupClients = 16

func (b *bench) daemonGroup() error {
	for _, size := range []int{64, 1024} {
		err := b.InTurns(fmt.Sprintf("group of %d processes", groupClients), size, "", []string{"udp", "daemon"}, func(variant string) (rate float64, err error) {
			err = b.measureVariant(variant, func() (err error) {
				rate, err = b.groupRate(variant, size)
				return err
			})
			return rate, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// groupRate returns the sum of the rates of all receivers.
func (b *bench) groupRate(variant string, size int) (sum float64, err error) {
	at, from := b.socketsFor(variant)
	var receivers []*harness.Child
	for range groupClients {
		r, err := harness.Start(harness.Job{Role: "receive group", Variant: variant, Size: size, Receivers: 1, Namespace: b.b.Path(), Own: b.right, Peer: b.left, Socket: at})
		if err != nil {
			return 0, err
		}
		receivers = append(receivers, r)
	}
	peer := b.right
	peer.QPN = receivers[0].Ready.QPN
	s, err := harness.Start(harness.Job{Role: "send group", Variant: variant, Size: size, Receivers: 1, Namespace: b.a.Path(), Own: b.left, Peer: peer, Duration: b.Duration, Socket: from})
	if err == nil {
		_, err = s.Finish(false)
	}
	for _, r := range receivers {
		got, failed := r.Finish(true)
		if err == nil {
			err = failed
		}
		sum += got.PerSecond
	}
	return sum, err
}

// daemonObjects measures the creation and destruction of a queue pair.
func (b *bench) daemonObjects() error {
	for _, variant := range []string{"worker", "daemon"} {
		err := b.measureVariant(variant, func() error {
			_, from := b.socketsFor(variant)
			r, err := b.alone(harness.Job{Role: "objects", Variant: variant, Size: 64, Count: 5000, Socket: from})
			all := r.RoundTrips
			b.Add(harness.Record{Name: "create and destroy a QP", Variant: variant, P50: harness.Percentile(all, 50), P90: harness.Percentile(all, 90), P99: harness.Percentile(all, 99), P999: harness.Percentile(all, 99.9)})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// alone runs a job on the left host, and sorts its times.
func (b *bench) alone(j harness.Job) (harness.Result, error) {
	j.Namespace, j.Own, j.Peer = b.a.Path(), b.left, b.right
	c, err := harness.Start(j)
	if err != nil {
		return harness.Result{}, err
	}
	return c.Finish(false)
}

// daemonIdle measures the processor time of an idle daemon with 100 clients.
func (b *bench) daemonIdle() error {
	return b.withDaemons(func(left, _ *harness.Child) error {
		clients, err := harness.Start(harness.Job{Role: "connect", Variant: "daemon", Size: 64, Clients: 100, Socket: b.sockets[0]})
		if err != nil {
			return err
		}
		time.Sleep(time.Second)
		before, err := usedBy(left.Command.Process.Pid)
		if err != nil {
			return err
		}
		const idle = 5 * time.Second
		time.Sleep(idle)
		after, err := usedBy(left.Command.Process.Pid)
		if err != nil {
			return err
		}
		b.Add(harness.Record{Name: "idle daemon with 100 clients", Variant: "daemon", CPU: (after - before).Seconds() / idle.Seconds()})
		_, err = clients.Finish(true)
		return err
	})
}

// usedBy returns the processor time that the threads of a process have used.
func usedBy(pid int) (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		nanoseconds, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, nil
}

// daemonCrowd measures how 8192 idle queue pairs of 256 idle programs slow an active program down.
func (b *bench) daemonCrowd() error {
	const programs, queuePairs = 256, 32
	return b.InTurns("daemon, idle queue pairs of others", 64, "", []string{"daemon none", "daemon 8192"}, func(variant string) (rate float64, err error) {
		err = b.withDaemons(func(_, _ *harness.Child) error {
			if variant == "daemon 8192" {
				crowd, err := harness.Start(harness.Job{Role: "connect", Variant: "daemon", Size: 64, Clients: programs, Receivers: queuePairs - 1, Socket: b.sockets[1]})
				if err != nil {
					return err
				}
				defer crowd.Finish(true)
			}
			rate, err = b.oneWayRate(harness.Job{Variant: "daemon", Size: 64})
			return err
		})
		return rate, err
	})
}
