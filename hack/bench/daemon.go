package main

import (
	"net"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
	viadaemon "github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
)

// runDaemon opens the card and serves clients until it is stopped.
func runDaemon(j job) (result, error) {
	card, err := hca.Open(linkName, hca.InNamespace(j.Namespace), hca.WithTuning(j.Tuning), hca.WithSendMode(j.Send), hca.WithoutInline())
	if err != nil {
		return result{}, err
	}
	s, err := server.New(server.Config{Devices: []server.Source{card}, PrivilegedGroup: -1})
	if err != nil {
		return result{}, err
	}
	listener, err := net.Listen("unixpacket", j.Socket)
	if err != nil {
		return result{}, err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	if err := announce(endpoint{}); err != nil {
		return result{}, err
	}
	<-untilStopped.Done()
	if err := s.Close(); err != nil {
		return result{}, err
	}
	if err := <-served; err != nil {
		return result{}, err
	}
	return result{}, card.Close()
}

// dialProgram is a program of the daemon.
func dialProgram(j job) (*program, error) {
	c, err := viadaemon.Dial(j.Socket, "")
	if err != nil {
		return nil, err
	}
	return newProgram(c, j.Variant == "daemon", j.Size)
}

// connectMany opens so many programs, each with queue pairs, and leaves them idle.
func connectMany(j job) (result, error) {
	for range j.Clients {
		p, err := dialProgram(j)
		if err != nil {
			return result{}, err
		}
		for range j.Receivers {
			if _, err := p.newQP(16); err != nil {
				return result{}, err
			}
		}
	}
	if err := announce(endpoint{}); err != nil {
		return result{}, err
	}
	<-untilStopped.Done()
	return result{}, nil
}

// makeObjects makes and destroys queue pairs: how long each pair of commands takes.
func makeObjects(j job) (result, error) {
	p, err := openProgram(j)
	if err != nil {
		return result{}, err
	}
	if err := announce(endpoint{}); err != nil {
		return result{}, err
	}
	var r result
	for range j.Count {
		start := time.Now()
		qp, err := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.send, RecvCQ: p.recv, Cap: verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128}})
		if err != nil {
			return result{}, err
		}
		if err := qp.Close(); err != nil {
			return result{}, err
		}
		r.RoundTrips = append(r.RoundTrips, time.Since(start))
	}
	slices.Sort(r.RoundTrips)
	return r, p.close()
}
