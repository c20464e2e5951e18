// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/roced/roced/hack/interop/vm"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/tools"
	"github.com/roced/roced/verbs/hca"
)

// options contains the command-line options.
type options struct {
	only     *regexp.Regexp
	list     bool
	kernel   vm.Kernel
	captures string // folder for pcap files
	network  hca.Network
	send     hca.SendMode
	workers  int
	model    vm.Model // model of the host's card with zero-copy; if empty, the host is a namespace
}

func main() {
	o, err := parseOptions()
	if err == nil && !o.list && os.Geteuid() != 0 {
		err = errors.New("namespaces and TAPs need root")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(2)
	}
	if o.list {
		for _, c := range allCases() {
			fmt.Println(c.name)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func parseOptions() (o options, err error) {
	only := flag.String("only", "", "regular `expression` of the cases to run")
	kernel := flag.String("kernel", string(vm.Stable), "kernel of the peer: stable (Linux 6.1) or backports (6.12)")
	network := flag.String("network", string(hca.NetworkXDP), "`interface` of roced to the network: xdp or udp")
	send := flag.String("tx", string(hca.SendAuto), "send `mode` of roced, unless a case sets one: auto, af_xdp or trains")
	flag.IntVar(&o.workers, "workers", 1, "`number` of roced's workers, each with a queue of the host's interface: 1, or 2 over XDP")
	model := flag.String("zerocopy", "", "use a virtual machine as the host, with a network card of this `model` and AF_XDP zero-copy: virtio-net-pci or igb")
	flag.BoolVar(&o.list, "list", false, "list the cases")
	flag.StringVar(&o.captures, "captures", "", "`folder` for a pcap file of each case")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	o.network, o.send = hca.Network(*network), hca.SendMode(*send)
	if o.workers != 1 && (o.workers != 2 || o.network == hca.NetworkUDP) {
		return o, fmt.Errorf("invalid number of workers %d: use 1 or 2 over XDP, 1 over UDP sockets", o.workers)
	}
	if o.model = vm.Model(*model); o.model != "" && (!slices.Contains(vm.Models, o.model) || o.workers > 1 || o.network == hca.NetworkUDP) {
		return o, fmt.Errorf("invalid -zerocopy %s: use one of %v, over XDP with one worker", o.model, vm.Models)
	}
	if o.kernel, err = vm.ParseKernel(*kernel); err != nil {
		return o, err
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

// run runs the selected cases, with a testbed for each kind.
func run(ctx context.Context, o options) error {
	if err := lab.Prune(labPrefix); err != nil {
		return err
	}
	if o.captures == "" {
		dir, err := os.MkdirTemp("", "roced-interop-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.captures = dir
	} else if err := os.MkdirAll(o.captures, 0o755); err != nil {
		return err
	}
	if err := tools.Check("interop"); err != nil {
		return err
	}
	var report report
	for _, kind := range bedKinds {
		if err := runBed(ctx, o, kind, &report); err != nil {
			return err
		}
	}
	return report.end()
}

// skipReason returns the reason why a case is skipped with the options, or "".
func (o *options) skipReason(c *testCase) (why string) {
	switch {
	case o.model != "" && (c.verbs || c.bad):
		return "roced's end is this program, which requires a namespace as the host"
	case o.model != "" && c.mtu == jumboMTU:
		return "zero-copy is not possible with RDMA MTU 4096"
	case o.model != "" && c.xdp, o.workers > 1 && (c.xdp || c.uso), o.network == hca.NetworkUDP && c.xdp:
		return "they test send modes that require XDP with one worker in copy mode"
	}
	return ""
}

// runBed runs the cases that require a kind of testbed.
func runBed(ctx context.Context, o options, kind bedKind, report *report) (err error) {
	var cases []testCase
	skipped := map[string]int{}
	for _, c := range allCases() {
		switch why := o.skipReason(&c); {
		case c.bed() != kind || !o.only.MatchString(c.name):
		case why != "":
			skipped[why]++
		default:
			cases = append(cases, c)
		}
	}
	for why, n := range skipped {
		report.skip(n, why)
	}
	if len(cases) == 0 {
		return nil
	}
	if kind.uso {
		if can, err := vm.CanUSO(); err != nil || !can {
			report.skip(len(cases), "trains to the peer require QEMU 8.2 or later (guest_uso4)")
			return err
		}
		o.kernel = vm.Backports // Linux 6.1 does not support them
	}
	image, err := vm.Image(ctx, o.kernel, os.Stderr)
	if err != nil {
		return err
	}
	bed, err := newTestbed(ctx, image, kind, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	host := ""
	if o.model != "" {
		host = fmt.Sprintf(", in zero-copy over %s of Linux %s", o.model, bed.machineRelease)
	}
	report.heading(fmt.Sprintf("peer: Linux %s, rdma_rxe; %v; roced over %s%s, %d workers, sends in mode %s", vm.Release(image), kind, o.network, host, o.workers, o.send))
	for _, c := range cases {
		detail, err := bed.try(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report.line(c.name, detail, err)
	}
	if o.workers > 1 {
		detail, err := bed.spread()
		report.line("both workers received packets", detail, err)
	}
	return nil
}
