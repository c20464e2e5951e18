// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/vishvananda/netlink"
)

// The host as a virtual machine with a network card that supports AF_XDP zero-copy.
const (
	machineName   = "host"
	machineMemory = 1024 // MB
	// machineBacklog is the queue length of the TAP in packets. It is large, since no card would count packets that are
	// dropped there.
	machineBacklog = 20000
)

// bootMachine boots the host with a card of a model, and connects it to the switch.
func (l *testbed) bootMachine(ctx context.Context, model vm.Model) (err error) {
	image, err := vm.Image(ctx, vm.Newest, os.Stderr)
	if err != nil {
		return err
	}
	if l.hostPort, err = l.bridge.Tap(l.mtu); err != nil {
		return err
	}
	port := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: l.hostPort}}
	if err := l.bridge.Netlink().LinkSetTxQLen(port, machineBacklog); err != nil {
		return fmt.Errorf("queue of %s: %w", l.hostPort, err)
	}
	l.machine, err = vm.Boot(ctx, vm.Config{
		Name: machineName, Image: image, Namespace: l.bridge.Namespace, MTU: l.mtu, Memory: machineMemory,
		Cards:     []vm.Card{{Model: model, Tap: l.hostPort, Queues: 1}},
		Addresses: hostAddresses, Share: filepath.Dir(l.roced), NoRXE: true,
	})
	l.machineRelease = vm.Release(image)
	return err
}

// startInMachine starts roced in the virtual machine.
func (l *testbed) startInMachine(ctx context.Context, args []string) *job.Job {
	line := []string{"/host/" + filepath.Base(l.roced)}
	for _, arg := range args {
		line = append(line, "'"+arg+"'")
	}
	return l.machine.Start(ctx, strings.Join(line, " "))
}

// hostListens reports whether a program listens on a TCP port of the host.
func (l *testbed) hostListens(ctx context.Context, port uint16) (bool, error) {
	if l.machine == nil {
		return l.host.Listens(port)
	}
	said, err := l.machine.Run(ctx, fmt.Sprintf("ss -Hltn sport = %d", port))
	return said != "", err
}
