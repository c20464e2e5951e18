// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		exit(harness.Serve(os.Args[2], childRoles, prepareChild))
	}
	b := &bench{}
	flag.DurationVar(&b.Duration, "duration", time.Second, "duration of each throughput measurement")
	flag.IntVar(&b.Rounds, "rounds", 5, "number of measurements of each case, whose median is reported")
	flag.IntVar(&b.Trips, "trips", 50000, "number of round trips in each latency measurement")
	flag.StringVar(&b.sends, "send", "auto,af_xdp", "comma-separated send modes for mixed traffic")
	flag.StringVar(&b.Output, "output", "bench.json", "file for the records, in which other parts are kept; none if empty")
	only := flag.String("only", "", "regular expression of the parts to run: oneway, mixed, roundtrip, ud, receive, requests, rpc, blocking, fanout, joins, engine, idle, connections (bulk, many, trips, short), daemon (rates, trips, group, objects, idle, crowd, workers)")
	flag.Parse()
	exit(b.main(regexp.MustCompile(*only)))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bench consists of two hosts, and the measurements between them.
type bench struct {
	harness.Measurements
	sends       string
	a, b        *lab.Namespace
	left, right harness.Endpoint
	sockets     [2]string // sockets of the daemons on a and b while they run
	workers     int       // workers of each daemon's card; 0 means one
}

func (b *bench) main(only *regexp.Regexp) (err error) {
	if err := b.setUp(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.a.Close(), b.b.Close()) }()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, unix.SIGINT, unix.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- b.runParts(only) }()
	select {
	case <-interrupted:
		return errors.New("interrupted")
	case err = <-done:
	}
	if err != nil {
		return err
	}
	return b.Report()
}

func (b *bench) runParts(only *regexp.Regexp) error {
	return b.Measurements.Run(only, []harness.Part{
		{Name: "oneway", Run: b.oneWay},
		{Name: "mixed", Run: b.mixed},
		{Name: "roundtrip", Run: b.roundTrips},
		{Name: "ud", Run: b.shortWay},
		{Name: "receive", Run: b.receiveAlone},
		{Name: "requests", Run: b.requests},
		{Name: "rpc", Run: b.rpc},
		{Name: "blocking", Run: b.blocking},
		{Name: "fanout", Run: b.fanOut},
		{Name: "joins", Run: b.joins},
		{Name: "engine", Run: b.engineAlone},
		{Name: "idle", Run: b.idleCost},
		{Name: "connections bulk", Run: b.bulkRates},
		{Name: "connections many", Run: b.manyRates},
		{Name: "connections trips", Run: b.connectedTrips},
		{Name: "connections short", Run: b.shortConnections},
		{Name: "daemon rates", Run: b.daemonRates},
		{Name: "daemon trips", Run: b.daemonTrips},
		{Name: "daemon group", Run: b.daemonGroup},
		{Name: "daemon objects", Run: b.daemonObjects},
		{Name: "daemon idle", Run: b.daemonIdle},
		{Name: "daemon crowd", Run: b.daemonCrowd},
		{Name: "daemon workers", Run: b.daemonWorkers},
	})
}

// setUp connects two namespaces by a veth pair with one queue.
func (b *bench) setUp() (err error) {
	if err := lab.Prune("roced-bench"); err != nil {
		return err
	}
	return b.openHosts("roced-bench")
}

// openHosts creates two namespaces, and connects them by a veth pair.
func (b *bench) openHosts(name string, options ...lab.VethOption) (err error) {
	if b.a, err = lab.New(name + "-a"); err != nil {
		return err
	}
	if b.b, err = lab.New(name + "-b"); err != nil {
		return errors.Join(err, b.a.Close())
	}
	if err := b.join(options); err != nil {
		return errors.Join(err, b.a.Close(), b.b.Close())
	}
	return nil
}

func (b *bench) join(options []lab.VethOption) (err error) {
	if err := lab.Veth(b.a, b.b, linkName, linkName, options...); err != nil {
		return err
	}
	if b.left, err = host(b.a, "10.77.0.1"); err != nil {
		return err
	}
	b.right, err = host(b.b, "10.77.0.2")
	return err
}

func host(ns *lab.Namespace, address string) (harness.Endpoint, error) {
	if err := ns.AddAddress(linkName, address+"/24"); err != nil {
		return harness.Endpoint{}, err
	}
	link, err := ns.Netlink().LinkByName(linkName)
	if err != nil {
		return harness.Endpoint{}, err
	}
	return harness.Endpoint{Address: address, MAC: link.Attrs().HardwareAddr.String()}, nil
}
