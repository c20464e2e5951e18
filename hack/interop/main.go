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

// options are the command line's.
type options struct {
	only     *regexp.Regexp
	list     bool
	kernel   vm.Kernel
	captures string // the folder for pcap files
	network  hca.Network
	send     hca.SendMode
	workers  int
	model    vm.Model // of the host's card, which has zero-copy; empty: the host is a namespace
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
	only := flag.String("only", "", "run the cases whose name matches a regular `expression`")
	kernel := flag.String("kernel", string(vm.Stable), "the peer's: stable (Linux 6.1) or backports (6.12)")
	network := flag.String("network", string(hca.NetworkXDP), "roced's `way` to the network: xdp or udp")
	send := flag.String("tx", string(hca.SendAuto), "roced's send `mode`, where a case has no other: auto, af_xdp or trains")
	flag.IntVar(&o.workers, "workers", 1, "`how many` workers roced has, 1 or 2, each with a queue of the host's interface; over XDP")
	model := flag.String("zerocopy", "", "have the host be a virtual machine with a network card of this `model`, over AF_XDP zero-copy: virtio-net-pci or igb")
	flag.BoolVar(&o.list, "list", false, "list the cases")
	flag.StringVar(&o.captures, "captures", "", "keep a pcap file of each case in this `folder`")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	o.network, o.send = hca.Network(*network), hca.SendMode(*send)
	if o.workers != 1 && (o.workers != 2 || o.network == hca.NetworkUDP) {
		return o, fmt.Errorf("%d workers: over XDP it is 1 or 2, over UDP sockets 1", o.workers)
	}
	if o.model = vm.Model(*model); o.model != "" && (!slices.Contains(vm.Models, o.model) || o.workers > 1 || o.network == hca.NetworkUDP) {
		return o, fmt.Errorf("-zerocopy %s: it is one of %v, over XDP with one worker", o.model, vm.Models)
	}
	if o.kernel, err = vm.ParseKernel(*kernel); err != nil {
		return o, err
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

// run runs the cases that were asked for, on as many labs as they need.
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

// leavesOut returns the reason why a case is skipped with the options, or "".
func (o *options) leavesOut(c *testCase) (why string) {
	switch {
	case o.model != "" && (c.verbs || c.bad):
		return "roced's end is this program, which needs the host to be a namespace"
	case o.model != "" && c.mtu == jumboMTU:
		return "with RDMA MTU 4096 there is no zero-copy"
	case o.model != "" && c.xdp, o.workers > 1 && (c.xdp || c.uso), o.network == hca.NetworkUDP && c.xdp:
		return "they are about ways of sending that only XDP with one worker, in copy mode, has"
	}
	return ""
}

// runBed runs the cases that want a kind of testbed.
func runBed(ctx context.Context, o options, kind bedKind, report *report) (err error) {
	var cases []testCase
	leftOut := map[string]int{}
	for _, c := range allCases() {
		switch why := o.leavesOut(&c); {
		case c.bed() != kind || !o.only.MatchString(c.name):
		case why != "":
			leftOut[why]++
		default:
			cases = append(cases, c)
		}
	}
	for why, n := range leftOut {
		report.leaveOut(n, why)
	}
	if len(cases) == 0 {
		return nil
	}
	if kind.uso {
		if can, err := vm.CanUSO(); err != nil || !can {
			report.leaveOut(len(cases), "the peer can take trains only with QEMU 8.2 or later (guest_uso4)")
			return err
		}
		o.kernel = vm.Backports // Linux 6.1 takes none
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
		report.line("both workers had packets", detail, err)
	}
	return nil
}
