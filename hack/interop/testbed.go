// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/verbs/hca"
)

// labPrefix is the prefix of the lab's namespaces.
const labPrefix = "interop"

// MTUs of the link for RDMA MTUs of 1024 and 4096 bytes.
const (
	standardMTU = 1500
	jumboMTU    = 9000
)

// Addresses of the two ends.
var (
	hostIPv4 = netip.MustParseAddr("10.98.0.1")
	hostIPv6 = netip.MustParseAddr("fd98::1")
	peerIPv4 = netip.MustParseAddr("10.98.0.2")
	peerIPv6 = netip.MustParseAddr("fd98::2")
)

// pair contains an address of each end.
type pair struct{ host, peer netip.Addr }

func ends(ipv6 bool) pair {
	if ipv6 {
		return pair{hostIPv6, peerIPv6}
	}
	return pair{hostIPv4, peerIPv4}
}

// hostAddresses contains the host's addresses with prefix lengths.
var hostAddresses = []string{hostIPv4.String() + "/24", hostIPv6.String() + "/64"}

// testbed contains the host, the switch and the peer.
type testbed struct {
	host           *lab.Namespace // nil if the host is a machine
	machine        *vm.VM         // nil if the host is a namespace
	machineRelease string         // kernel release of the machine
	bridge         *lab.Bridge
	peer           *vm.VM
	wire           *lab.BadWire   // nil if the host is connected to the bridge directly
	middle         *lab.Namespace // namespace of wire
	spreading      io.Closer      // nil if all packets arrive in one queue of the host
	hostPort       string         // port of the bridge
	peerPort       string
	kernel         string // kernel release of the peer
	bedKind

	captures string // folder for pcap files
	// The recorders of the running case and, after stopCapture, the frames.
	hostRecorder, peerRecorder *capture.Recorder
	hostFrames, peerFrames     []capture.Recorded // trains are replaced by their packets
	hostTrains, peerTrains     int                // numbers of trains

	roced   string       // path of the binary
	network hca.Network  // network of roced
	send    hca.SendMode // send mode of roced, unless a case sets one
	workers int          // workers of roced's card, and queues of the host's interface
}

// bedKind contains the properties of a testbed.
type bedKind struct {
	mtu int
	uso bool // the peer's kernel receives trains and segments them
	bad bool // packets are lost, duplicated and delayed between the host and the bridge
}

// bedKinds lists all kinds.
var bedKinds = []bedKind{{mtu: standardMTU}, {mtu: jumboMTU}, {mtu: standardMTU, bad: true}, {mtu: standardMTU, uso: true}}

func (k bedKind) String() string {
	switch {
	case k.bad:
		return fmt.Sprintf("link MTU %d, lossy wire", k.mtu)
	case k.uso:
		return fmt.Sprintf("link MTU %d, the peer receives trains (USO)", k.mtu)
	}
	return fmt.Sprintf("link MTU %d", k.mtu)
}

func newTestbed(ctx context.Context, image string, kind bedKind, o options) (*testbed, error) {
	l := &testbed{bedKind: kind, captures: o.captures, kernel: vm.Release(image), network: o.network, send: o.send, workers: o.workers}
	if err := l.open(ctx, image, o); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: %w", err), l.Close())
	}
	return l, nil
}

func (l *testbed) open(ctx context.Context, image string, o options) (err error) {
	if l.roced, err = buildRoced(ctx); err != nil {
		return err
	}
	if l.bridge, err = lab.NewBridge(labPrefix + "-switch"); err != nil {
		return err
	}
	if o.model == "" {
		err = l.openHost()
	} else {
		err = l.bootMachine(ctx, o.model)
	}
	if err != nil {
		return err
	}
	if l.peerPort, err = l.bridge.Tap(l.mtu); err != nil {
		return err
	}
	l.peer, err = vm.Boot(ctx, vm.Config{
		Name: "peer", Image: image, Namespace: l.bridge.Namespace, Tap: l.peerPort, MTU: l.mtu, USO: l.uso,
		Addresses: []string{peerIPv4.String() + "/24", peerIPv6.String() + "/64"},
	})
	return err
}

// openHost creates the host, and connects it to the bridge.
func (l *testbed) openHost() (err error) {
	if l.host, err = lab.New(labPrefix + "-host"); err != nil {
		return err
	}
	if err := l.openWire(); err != nil {
		return err
	}
	for _, address := range hostAddresses {
		if err := l.host.AddAddress("eth0", address); err != nil {
			return err
		}
	}
	return nil
}

// badWire loses, duplicates and reorders packets. It does not corrupt them, since that would fail the checks of the
// capture.
var badWire = lab.Impairment{Loss: 0.01, Duplication: 0.02, Delay: 0.01, DelayTime: 200 * time.Microsecond}

// openWire connects the host to the bridge, directly or through badWire.
func (l *testbed) openWire() (err error) {
	options := []lab.VethOption{lab.WithMTU(l.mtu), lab.WithQueues(l.workers)}
	if !l.bad {
		if l.hostPort, err = l.bridge.Port(l.host, "eth0", options...); err != nil || l.workers == 1 {
			return err
		}
		l.spreading, err = l.bridge.SpreadByPort(l.hostPort)
		return err
	}
	if l.middle, err = lab.New(labPrefix + "-wire"); err != nil {
		return err
	}
	if err := lab.Veth(l.host, l.middle, "eth0", "a", options...); err != nil {
		return err
	}
	if l.workers > 1 {
		if l.spreading, err = l.middle.SpreadByPort("a"); err != nil {
			return err
		}
	}
	if l.hostPort, err = l.bridge.Port(l.middle, "b", lab.WithMTU(l.mtu)); err != nil {
		return err
	}
	seed := rand.Uint64()
	fmt.Printf("\nthe seed of the lossy wire is %d\n", seed)
	l.wire, err = lab.NewBadWire(l.middle, "a", "b", seed, badWire)
	return err
}

// spread returns the number of packets in each of roced's queues, or an error if a queue had none.
func (l *testbed) spread() (detail string, err error) {
	packets, err := l.host.ArrivedByQueue("eth0")
	if err == nil && (len(packets) != l.workers || slices.Contains(packets, 0)) {
		err = fmt.Errorf("packets by queue: %d, want packets for each of %d workers", packets, l.workers)
	}
	return fmt.Sprintf("packets by queue: %d", packets), err
}

// Close stops the machines and removes the namespaces.
func (l *testbed) Close() (err error) {
	for _, machine := range []*vm.VM{l.peer, l.machine} {
		if machine != nil {
			err = errors.Join(err, machine.Close())
		}
	}
	if l.spreading != nil {
		err = errors.Join(err, l.spreading.Close())
	}
	if l.wire != nil {
		err = errors.Join(err, l.wire.Close())
	}
	if l.middle != nil {
		err = errors.Join(err, l.middle.Close())
	}
	if l.bridge != nil {
		err = errors.Join(err, l.bridge.Close())
	}
	if l.host != nil {
		err = errors.Join(err, l.host.Close())
	}
	if l.roced != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(l.roced)))
	}
	return err
}
