// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
)

// labPrefix is the prefix of the lab's namespaces.
const labPrefix = "rates"

// Resources of each machine besides processors.
const (
	guestMemory = 1024 // MB
	guestMTU    = 1500
)

// The machines' addresses.
const (
	leftAddress  = "10.98.0.1"
	rightAddress = "10.98.0.2"
)

// testbed contains two machines and the switch between them.
type testbed struct {
	options     options
	share       string // folder that both machines mount as /host
	bridge      *lab.Bridge
	left, right *vm.VM // sender and receiver
	rxe         bool   // Soft-RoCE is loaded
}

func newTestbed(ctx context.Context, image string, o options) (*testbed, error) {
	l := &testbed{options: o}
	if err := l.open(ctx, image); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: %w", err), l.Close())
	}
	return l, nil
}

func (l *testbed) open(ctx context.Context, image string) (err error) {
	if l.share, err = os.MkdirTemp("", "roced-rates-"); err != nil {
		return err
	}
	for name, program := range map[string]string{"roced": "cmd/roced", "bench": "hack/bench"} {
		if err := vm.Build(ctx, filepath.Join(l.share, name), program); err != nil {
			return err
		}
	}
	if l.bridge, err = lab.NewBridge(labPrefix); err != nil {
		return err
	}
	if l.left, err = l.boot(ctx, "left", image, leftAddress); err != nil {
		return err
	}
	if l.right, err = l.boot(ctx, "right", image, rightAddress); err != nil {
		return err
	}
	l.rxe = true // the image loads it
	return l.setRXE(ctx, false)
}

func (l *testbed) boot(ctx context.Context, name, image, address string) (*vm.VM, error) {
	tap, err := l.bridge.Tap(guestMTU)
	if err != nil {
		return nil, err
	}
	return vm.Boot(ctx, vm.Config{
		Name: name, Image: image, Namespace: l.bridge.Namespace, Tap: tap, MTU: guestMTU, Addresses: []string{address + "/24"},
		Memory: guestMemory, CPUs: l.options.cpus, Share: l.share, NoRXE: true,
	})
}

// Close stops the machines and removes the switch.
func (l *testbed) Close() (err error) {
	for _, machine := range []*vm.VM{l.left, l.right} {
		if machine != nil {
			err = errors.Join(err, machine.Close())
		}
	}
	if l.bridge != nil {
		err = errors.Join(err, l.bridge.Close())
	}
	return errors.Join(err, os.RemoveAll(l.share))
}

// setRXE loads Soft-RoCE on both cards, or unloads it: while it is loaded, it occupies UDP port 4791 and processes
// every packet there.
func (l *testbed) setRXE(ctx context.Context, on bool) error {
	if on == l.rxe {
		return nil
	}
	script := "rdma link delete rxe0 2>/dev/null; rmmod rdma_rxe"
	if on {
		script = "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0"
	}
	for _, machine := range []*vm.VM{l.left, l.right} {
		if out, err := machine.Run(ctx, script); err != nil {
			return fmt.Errorf("%s: %w: %s", script, err, out)
		}
	}
	l.rxe = on
	return nil
}

// controlPort is the TCP port of roced perf and perftest.
const controlPort = 18515

// runBoth runs a server on the right machine and, once it listens, a client on the left one. It returns the output of
// both.
func (l *testbed) runBoth(ctx context.Context, server, client string) (served, said string, err error) {
	right := l.right.Start(ctx, server)
	if err := l.awaitListener(ctx); err != nil {
		if right.Ended() {
			served, err = right.Wait()
		}
		return "", "", fmt.Errorf("server does not listen: %w: %s", err, served)
	}
	return job.Both("right", right, "left", l.left.Start(ctx, client))
}

// listenTime is the time limit for the start of a server.
const listenTime = 20 * time.Second

func (l *testbed) awaitListener(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	_, err := l.right.Run(ctx, fmt.Sprintf("until ss -Hltn sport = :%d | grep -q .; do sleep 0.1; done", controlPort))
	return err
}
