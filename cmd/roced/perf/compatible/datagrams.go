// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/verbs"
)

// datagrams implements the traffic of ib_send_bw -c UD and ib_send_lat -c UD.
type datagrams struct {
	*perftestRun
	endpoint *card.Endpoint
}

// Close detaches from the group and leaves it.
func (d *datagrams) Close() error {
	if d.endpoint == nil {
		return nil
	}
	return d.endpoint.Close()
}

func (d *datagrams) size() (int, error) {
	mtu := d.mtu.Bytes()
	switch {
	case d.options.OwnSizes:
		return d.options.Sizes[0], card.CheckSize(d.options.Sizes[0], mtu)
	case d.test.Kind == protocol.Latency:
		return perftestLatencySize, nil
	}
	return mtu, nil // perftest's default, 65536, does not fit
}

// perftestLatencySize is the default message size of perftest's latency programs, in bytes.
const perftestLatencySize = 2

// prepare creates the queue pair and attaches it to the group.
func (d *datagrams) prepare(peer *perftest.Keys) (own perftest.Keys, err error) {
	source, err := d.chooseGID(peer)
	if err != nil {
		return own, err
	}
	o := traffic.EndpointOptions(source.GID, !d.options.Waiting.Sleep)
	o.NoLoopback = true
	if d.endpoint, err = card.OpenEndpoint(d.device, o); err != nil {
		return own, err
	}
	own.QPN, own.GID, own.OutReads = d.endpoint.QPN(), source.GID, 1
	if d.options.Group == "" {
		return own, nil
	}
	group, err := card.ParseGroup("--group", d.options.Group, d.options.Device)
	if err != nil {
		return own, err
	}
	own.QPN, own.GID = verbs.MulticastQPN, verbs.GIDFromAddr(group)
	return own, d.endpoint.Join(group)
}

// chooseGID chooses a source address of the peer's IP version if the peer is known.
func (r *perftestRun) chooseGID(peer *perftest.Keys) (verbs.GIDEntry, error) {
	var gid verbs.GID
	if peer != nil {
		gid = peer.GID
	}
	return r.device.ChooseGID(r.options.GIDIndex, r.local, gid)
}

// sends reports whether this side sends: the client, and for latency both.
func (d *datagrams) sends() bool { return d.exchange.Client || d.test.Kind == protocol.Latency }

// aim resolves the path to the peer's queue pair, or to its group.
func (d *datagrams) aim() error {
	if !d.sends() {
		return nil
	}
	return d.endpoint.Aim(d.Context(), d.exchange.Peer[0].Addr())
}

func (d *datagrams) sees() bool { return true }

func (d *datagrams) measure(line *cli.Progress) error {
	switch {
	case d.test.Kind == protocol.Latency:
		return d.exchangeMessages(line)
	case d.exchange.Client:
		return d.sendAll(line)
	}
	return d.receiveAll(line)
}
