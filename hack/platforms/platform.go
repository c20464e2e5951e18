// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/vm"
)

// platform is a kernel on an architecture.
type platform struct {
	name   string
	kernel vm.Kernel
	short  bool // used by -short
}

// platforms contains all machines in the order of their start. The first two have different architectures.
var platforms = []platform{
	{"amd64-6.1", vm.Stable, true},
	{"arm64-6.1", vm.ARM64Stable, true},
	{"amd64-6.12", vm.Backports, false},
	{"arm64-6.12-16k", vm.ARM64Backports16K, false},
	{"amd64-newest", vm.Newest, false},
}

func (p platform) arch() string { return p.kernel.Arch() }

func shortPlatforms() []platform {
	return slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return !p.short })
}

func names(list []platform) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

func parsePlatforms(list string) (parsed []platform, err error) {
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-machines: unknown machine %q; known are %s", name, strings.Join(names(platforms), ", "))
		}
		parsed = append(parsed, platforms[i])
	}
	return parsed, nil
}

// Resources of a guest. Its root file system is in memory.
const (
	guestMemory = 4096 // MB
	guestCPUs   = 2
)

// machine is a running guest of a platform.
type machine struct {
	platform
	image string
	share string
	guest *vm.VM // nil if not running
}

// test runs the platform's cases.
func (p platform) test(ctx context.Context, o options, shares *shares, passed *passed, r *report) (err error) {
	share, err := shares.of(ctx, p.arch())
	if err != nil {
		return err
	}
	image, err := vm.Image(ctx, p.kernel, os.Stderr)
	if err != nil {
		return err
	}
	m := &machine{p, image, share.folder, nil}
	defer func() { err = errors.Join(err, m.close()) }()
	if o.script != "" {
		out, err := m.run(ctx, o.timeout, "cd /tmp\n"+o.script)
		fmt.Println(out)
		return err
	}
	cases, err := p.cases(ctx, o)
	if err != nil {
		return err
	}
	first := firstOf(o.platforms, p.arch())
	row := r.begin(p, vm.Release(image))
	for _, c := range cases {
		if err := p.testCase(ctx, c, m, share, first, passed, row); err != nil {
			return err
		}
	}
	return nil
}

// testCase runs a case, unless it has passed before or another machine runs it. The error does not include the result
// of the case.
func (p platform) testCase(ctx context.Context, c testCase, m *machine, share *share, first platform, passed *passed, row *row) error {
	once, err := c.prepare(ctx, share)
	if err != nil {
		return err
	}
	if once && p.name != first.name {
		row.elsewhere(c, first.name)
		return nil
	}
	key, err := c.key(p.name, row.kernel, share)
	if err != nil {
		return err
	}
	if note, found := passed.lookup(key); found {
		row.add(c, note+", in an earlier run", "", nil, 0)
		return nil
	}
	start := time.Now()
	note, out, err := c.run(ctx, m)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	row.add(c, note, out, err, time.Since(start))
	if err != nil {
		return nil
	}
	return passed.add(key, p.name+" "+c.name, note)
}

// firstOf returns the first platform with an architecture.
func firstOf(list []platform, arch string) platform {
	return list[slices.IndexFunc(list, func(p platform) bool { return p.arch() == arch })]
}

// run runs a script in the guest, which it boots if necessary. It closes a guest that no longer responds.
func (m *machine) run(ctx context.Context, limit time.Duration, script string) (out string, err error) {
	guest, err := m.boot(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err = guest.Run(ctx, ". /host/guest.sh\ninstall || exit\n"+script)
	return out, m.judge(err)
}

// judge closes the guest after an error other than a script's exit status.
func (m *machine) judge(err error) error {
	var exit vm.ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return errors.Join(err, m.close())
}

// boot returns the guest, and boots it if it is not running.
func (m *machine) boot(ctx context.Context) (guest *vm.VM, err error) {
	if m.guest != nil {
		return m.guest, nil
	}
	start := time.Now()
	m.guest, err = vm.Boot(ctx, vm.Config{Name: "guest", Image: m.image, Arch: m.arch(), Memory: guestMemory, CPUs: guestCPUs, Share: m.share, NoRXE: true})
	if err == nil {
		fmt.Printf("\n%s: Linux %s, booted in %v\n", m.name, vm.Release(m.image), time.Since(start).Round(time.Second))
	}
	return m.guest, err
}

func (m *machine) close() (err error) {
	if m.guest != nil {
		err = m.guest.Close()
	}
	m.guest = nil
	return err
}
