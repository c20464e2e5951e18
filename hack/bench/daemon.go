// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"slices"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	viadaemon "github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
)

// runDaemon opens the card and serves clients until it is stopped.
func runDaemon(j harness.Job) (harness.Result, error) {
	card, err := hca.Open(linkName, hca.InNamespace(j.Namespace), hca.WithTuning(j.Tuning), hca.WithSendMode(j.Send), hca.WithoutInline(), hca.WithWorkers(max(j.Workers, 1)))
	if err != nil {
		return harness.Result{}, err
	}
	s, err := server.New(server.Config{Devices: []server.Source{card}, PrivilegedGroup: -1})
	if err != nil {
		return harness.Result{}, err
	}
	listener, err := net.Listen("unixpacket", j.Socket)
	if err != nil {
		return harness.Result{}, err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	<-harness.UntilStopped.Done()
	if err := s.Close(); err != nil {
		return harness.Result{}, err
	}
	if err := <-served; err != nil {
		return harness.Result{}, err
	}
	return harness.Result{}, card.Close()
}

// dialProgram opens a program that is a client of the daemon.
func dialProgram(j harness.Job) (*program, error) {
	c, err := viadaemon.Dial(j.Socket, "")
	if err != nil {
		return nil, err
	}
	return newProgram(c, j.Variant == "daemon" || j.Sleep, j.Size)
}

// connectMany opens the job's number of programs with queue pairs, which are idle.
func connectMany(j harness.Job) (harness.Result, error) {
	for range j.Clients {
		p, err := dialProgram(j)
		if err != nil {
			return harness.Result{}, err
		}
		for range j.Receivers {
			if _, err := p.newQP(16); err != nil {
				return harness.Result{}, err
			}
		}
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	<-harness.UntilStopped.Done()
	return harness.Result{}, nil
}

// makeObjects measures the time of creating and destroying a queue pair.
func makeObjects(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	var r harness.Result
	for range j.Count {
		start := time.Now()
		qp, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.send, RecvCQ: p.recv, Cap: verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128}})
		if err != nil {
			return harness.Result{}, err
		}
		if err := qp.Close(); err != nil {
			return harness.Result{}, err
		}
		r.RoundTrips = append(r.RoundTrips, time.Since(start))
	}
	slices.Sort(r.RoundTrips)
	return r, p.close()
}
