// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/internal/lab"
)

// workersMTU is the path MTU of the connections.
const workersMTU = 1024

// daemonWorkers measures the effect of several workers: the connections of two programs of a daemon, on a link with two
// queues, where trains are not used. Both ends share the processors of this machine.
func (b *bench) daemonWorkers() (err error) {
	wide := &bench{sends: b.sends}
	wide.Duration = b.Duration
	if err := wide.openHosts("roced-bench-wide", lab.WithQueues(2)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wide.a.Close(), wide.b.Close()) }()
	kinds := map[string]struct{ programs, workers int }{}
	var variants []string
	for _, workers := range []int{1, 2} {
		for _, programs := range []int{1, 2} {
			name := fmt.Sprintf("programs %d, workers %d", programs, workers)
			variants = append(variants, name)
			kinds[name] = struct{ programs, workers int }{programs, workers}
		}
	}
	return b.InTurns("daemon, connections of programs", workersMTU, "64 KiB", variants, func(variant string) (rate float64, err error) {
		kind := kinds[variant]
		err = wide.withWorkers(kind.workers, func() (err error) {
			rate, err = wide.programsRate(kind.programs)
			return err
		})
		return rate, err
	})
}

// withWorkers is like withDaemons, with several workers per daemon.
func (b *bench) withWorkers(workers int, do func() error) error {
	b.workers = workers
	return b.withDaemons(func(_, _ *harness.Child) error { return do() })
}

// programsRate returns the sum of the rates at which programs write over a connection each, in packets per second.
func (b *bench) programsRate(programs int) (sum float64, err error) {
	var receivers, senders []*harness.Child
	job := harness.Job{Variant: "rc write", Size: bulk, MTU: workersMTU, Sleep: true, Duration: b.Duration}
	for i := range programs {
		j := job
		j.Port, j.Role, j.Socket, j.Namespace, j.Own, j.Peer = connectionPort+i, "receive", b.sockets[1], b.b.Path(), b.right, b.left
		r, failed := harness.Start(j)
		if err = errors.Join(err, failed); failed != nil {
			break
		}
		receivers = append(receivers, r)
		j.Role, j.Socket, j.Namespace, j.Own, j.Peer = "send", b.sockets[0], b.a.Path(), b.left, b.right
		s, failed := harness.Start(j)
		if err = errors.Join(err, failed); failed != nil {
			break
		}
		senders = append(senders, s)
	}
	for _, s := range senders {
		sent, failed := s.Finish(false)
		err = errors.Join(err, failed)
		sum += sent.PerSecond
	}
	for _, r := range receivers {
		_, failed := r.Finish(true)
		err = errors.Join(err, failed)
	}
	return sum, err
}
