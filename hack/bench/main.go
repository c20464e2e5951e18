package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/roced/roced/internal/lab"
	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		exit(runChild(os.Args[2]))
	}
	b := &bench{}
	flag.DurationVar(&b.duration, "duration", time.Second, "time of each throughput measurement")
	flag.IntVar(&b.rounds, "rounds", 5, "measurements of each case; the median counts")
	flag.IntVar(&b.trips, "trips", 50000, "round trips of each latency measurement")
	flag.StringVar(&b.sends, "send", "auto,af_xdp", "send modes that mixed traffic is measured in")
	flag.StringVar(&b.output, "output", "bench.json", "file for the records, of which other parts are left as they are; empty for none")
	only := flag.String("only", "", "run only the parts that match: oneway, mixed, roundtrip, ud, receive, requests, blocking, fanout, joins, engine, idle, connections (bulk, many, trips, short), daemon (rates, trips, group, objects, idle, crowd)")
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

// bench is two hosts, and what was measured between them.
type bench struct {
	duration      time.Duration
	rounds, trips int
	sends, output string
	a, b          *lab.Namespace
	left, right   endpoint
	sockets       [2]string // of the daemons on a and b, while they run
	records       []record
}

func (b *bench) main(only *regexp.Regexp) (err error) {
	if _, err := readRecords(b.output); err != nil {
		return err // now, not after the first part
	}
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
	return b.report()
}

func (b *bench) runParts(only *regexp.Regexp) error {
	ran := false
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"oneway", b.oneWay}, {"mixed", b.mixed}, {"roundtrip", b.roundTrips}, {"ud", b.shortWay}, {"receive", b.receiveAlone}, {"requests", b.requests},
		{"blocking", b.blocking}, {"fanout", b.fanOut}, {"joins", b.joins}, {"engine", b.engineAlone}, {"idle", b.idleCost}, {"connections bulk", b.bulkRates}, {"connections many", b.manyRates}, {"connections trips", b.connectedTrips}, {"connections short", b.shortConnections},
		{"daemon rates", b.daemonRates}, {"daemon trips", b.daemonTrips}, {"daemon group", b.daemonGroup},
		{"daemon objects", b.daemonObjects}, {"daemon idle", b.daemonIdle}, {"daemon crowd", b.daemonCrowd},
	} {
		if !only.MatchString(part.name) {
			continue
		}
		ran = true
		first := len(b.records)
		err := part.run()
		if err == nil {
			err = b.keep(part.name, b.records[first:])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if !ran {
		return fmt.Errorf("no part matches %q; -help lists them", only)
	}
	return nil
}

// setUp joins two namespaces by a veth pair of one queue.
func (b *bench) setUp() (err error) {
	if err := lab.Prune("roced-bench"); err != nil {
		return err
	}
	if b.a, err = lab.New("roced-bench-a"); err != nil {
		return err
	}
	if b.b, err = lab.New("roced-bench-b"); err != nil {
		return errors.Join(err, b.a.Close())
	}
	if err := b.join(); err != nil {
		return errors.Join(err, b.a.Close(), b.b.Close())
	}
	return nil
}

func (b *bench) join() (err error) {
	if err := lab.Veth(b.a, b.b, linkName, linkName); err != nil {
		return err
	}
	if b.left, err = host(b.a, "10.77.0.1"); err != nil {
		return err
	}
	b.right, err = host(b.b, "10.77.0.2")
	return err
}

func host(ns *lab.Namespace, address string) (endpoint, error) {
	if err := ns.AddAddress(linkName, address+"/24"); err != nil {
		return endpoint{}, err
	}
	link, err := ns.Netlink().LinkByName(linkName)
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{Address: address, MAC: link.Attrs().HardwareAddr.String()}, nil
}
