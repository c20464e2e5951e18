// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/internal/lab"
)

// bulk is the length of the messages of connections, in bytes.
const bulk = 64 << 10

// linkMTU maps an RDMA MTU to the interface's MTU.
var linkMTU = map[int]int{1024: 1500, 4096: 9000}

// bulkRates measures messages of 64 KiB on one connection in packets per second, and compares them with datagrams of
// one packet and with a TCP stream of the same segment size.
func (b *bench) bulkRates() error {
	return b.atEachMTU(func(mtu int) error {
		variants := []string{"inline", "tcp", "tcp unsegmented", "rc send", "rc write", "rc read", "rc send" + overUDP, "rc write" + overUDP, "rc read" + overUDP}
		return b.InTurns("connection", mtu, "64 KiB", variants, func(variant string) (float64, error) { return b.connectionRate(variant, mtu, 1) })
	})
}

// manyRates measures several connections together.
func (b *bench) manyRates() error {
	return b.atEachMTU(func(mtu int) error {
		for _, network := range []string{"", overUDP} {
			variants := []string{"1" + network, "4" + network, "16" + network, "64" + network}
			err := b.InTurns("connections", mtu, "64 KiB", variants, func(variant string) (float64, error) {
				count, err := strconv.Atoi(strings.TrimSuffix(variant, network))
				if err != nil {
					return 0, err
				}
				return b.connectionRate("rc write"+network, mtu, count)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) connectedTrips() error {
	return b.trip([]tripKind{{"roundtrip connected", false, []string{"inline", "rc send", "rc send" + overUDP}}})
}

// shortConnections compares package rc with bare verbs: messages of 64 KiB on 1 and on 16 connections, then round
// trips.
func (b *bench) shortConnections() error {
	err := b.atEachMTU(func(mtu int) error {
		variants := []string{"rc send", "short send", "rc write", "short write", "rc read", "short read"}
		err := b.InTurns("connection short", mtu, "64 KiB", variants, func(variant string) (float64, error) { return b.connectionRate(variant, mtu, 1) })
		if err != nil {
			return err
		}
		return b.InTurns("connections short", mtu, "16 of 64 KiB", []string{"rc write", "short write"}, func(variant string) (float64, error) {
			return b.connectionRate(variant, mtu, 16)
		})
	})
	if err != nil {
		return err
	}
	return b.trip([]tripKind{{"roundtrip short connected", false, []string{"rc send", "short send"}}})
}

// atEachMTU measures with each path MTU. Afterwards the links have the MTU for the smaller one.
func (b *bench) atEachMTU(measure func(mtu int) error) error {
	for _, mtu := range []int{4096, 1024} {
		if err := errors.Join(b.setMTU(linkMTU[mtu]), measure(mtu)); err != nil {
			return err
		}
	}
	return nil
}

// connectionRate returns the packets per second of a variant. A TCP stream counts in parts of the same length.
func (b *bench) connectionRate(variant string, mtu, count int) (float64, error) {
	j := harness.Job{Variant: variant, Size: bulk, MTU: mtu, QueuePairs: count}
	if variant == "inline" {
		j.Size = mtu
	}
	receiver, sender := j, j
	receiver.Role, sender.Role = "receive", "send"
	sent, received, err := b.pair(receiver, sender)
	if variant == "inline" {
		return received.PerSecond, err
	}
	return sent.PerSecond, err
}

// setMTU sets the MTU of the link at both ends.
func (b *bench) setMTU(mtu int) error {
	for _, ns := range []*lab.Namespace{b.a, b.b} {
		link, err := ns.Netlink().LinkByName(linkName)
		if err == nil {
			err = ns.Netlink().LinkSetMTU(link, mtu)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
