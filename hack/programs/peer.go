// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
)

// newPeer starts a service in a namespace, and a virtual machine with Soft-RoCE, whose programs use Linux's verbs. The
// machine has the packages of the image, and mounts the folder of the bench as /host.
func newPeer(ctx context.Context, b *bench) (n *network, err error) {
	ours := &side{name: "10.77.0.1", ip4: "10.77.0.1", ip6: "fd77::1"}
	theirs := &side{name: "10.77.0.2", ip4: "10.77.0.2", ip6: "fd77::2"}
	n = &network{wire: true, sides: [2]*side{theirs, ours}}
	image, err := vm.Image(ctx, vm.Stable, os.Stderr)
	if err != nil {
		return n, err
	}
	n.name = "Soft-RoCE of Linux " + vm.Release(image)
	if ours.namespace, err = lab.New(labPrefix); err != nil {
		return n, err
	}
	if n.bridge, err = lab.NewBridge(labPrefix + "-switch"); err != nil {
		return n, err
	}
	if _, err := n.bridge.Port(ours.namespace, "eth0"); err != nil {
		return n, err
	}
	if err := errors.Join(ours.namespace.AddAddress("eth0", ours.ip4+"/24"), ours.namespace.AddAddress("eth0", ours.ip6+"/64")); err != nil {
		return n, err
	}
	tap, err := n.bridge.Tap(1500)
	if err != nil {
		return n, err
	}
	theirs.guest, err = vm.Boot(ctx, vm.Config{
		Name: "peer", Image: image, Namespace: n.bridge.Namespace, Tap: tap, MTU: 1500, Memory: 1024, Share: b.dir,
		Addresses: []string{theirs.ip4 + "/24", theirs.ip6 + "/64"},
	})
	if err != nil {
		return n, err
	}
	if err := ours.serve(ctx, b, "peer", "--device eth0 --network udp"); err != nil {
		return n, err
	}
	return n, errors.Join(b.findGID(ctx, ours), b.findGID(ctx, theirs))
}

// supports reports whether a case can run on the network.
func (n *network) supports(c testCase) bool {
	if n.bridge != nil && (c.server == "" || c.alien != "") || n.sides[0].guest != nil && c.alienServer != "" {
		return false
	}
	if n.machine && (!strings.Contains(c.client, "SERVER") || c.group) { // not by rdma_cm
		return false
	}
	return n.wire && !c.memory || !n.wire && !c.wire
}

// title returns the name of the network and the side of Soft-RoCE.
func (n *network) title() string {
	switch {
	case n.sides[0].guest != nil:
		return n.name + " at the server"
	case n.sides[1].guest != nil:
		return n.name + " at the client"
	}
	return n.name
}

// swapped returns the network with exchanged sides.
func (n *network) swapped() *network {
	other := *n
	other.sides[0], other.sides[1] = n.sides[1], n.sides[0]
	return &other
}

// gidLine matches a line of ibv_devinfo -v.
var gidLine = regexp.MustCompile(`GID\[\s*(\d+)\]:\s+([0-9a-f:.]+)`)

// findGID sets the index of the side's IPv4 GID.
func (b *bench) findGID(ctx context.Context, s *side) error {
	said, err := b.start(ctx, s, testCase{}, "ibv_devinfo -v").Wait()
	for _, found := range gidLine.FindAllStringSubmatch(said, -1) {
		if gid, parseErr := netip.ParseAddr(found[2]); parseErr == nil && gid.Unmap().String() == s.ip4 {
			s.gid, err = strconv.Atoi(found[1])
			return err
		}
	}
	return fmt.Errorf("no GID of %s (%v) in: %s", s.ip4, err, said)
}

// guestScripts is the number of scripts that the guest has run.
var guestScripts atomic.Int64

// startInGuest is like start, for a virtual machine. An agent kills its script only at the deadline. If the context
// ends earlier, another agent kills the script.
func (b *bench) startInGuest(ctx context.Context, s *side, c testCase, line string) *job.Job {
	pid := fmt.Sprintf("/run/program.%d", guestScripts.Add(1))
	script := fmt.Sprintf("echo $$ >%s; cd /host/home; export HOME=$PWD LANG=C PATH=$PATH:/host/root/usr/bin:/host/root/usr/sbin\n", pid) +
		"export LD_LIBRARY_PATH=$(echo /host/root/usr/lib/*-linux-gnu | tr ' ' :)\n"
	if c.tcp {
		script += "export LD_PRELOAD=$(echo /usr/lib/*/rsocket/librspreload.so)\n"
	}
	bounded, release := context.WithTimeout(context.WithoutCancel(ctx), guestTime)
	j := s.guest.Start(bounded, script+"exec "+line)
	go func() {
		defer release()
		select {
		case <-j.Done():
		case <-ctx.Done():
			_, _ = s.guest.Run(bounded, "kill $(cat "+pid+")") // the script may have ended
			<-j.Done()
		}
	}()
	return j
}

// fillFor replaces GIDINDEX, which differs between the sides.
func (s *side) fillFor(line string) string {
	return strings.ReplaceAll(line, "GIDINDEX", strconv.Itoa(s.gid))
}
