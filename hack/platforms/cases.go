// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/suite"
)

// Time limits, which end hanging cases. They are long, since emulation is slow and the machine may be shared.
const (
	demoTime    = 30 * time.Minute
	programTime = 15 * time.Minute
	suiteTime   = 2 * time.Hour // for the tests of one package
)

// parallelTests is the number of parallel tests of a package. The default of four per processor (internal/lab/labtest)
// is too high for an emulated one: several tests spin, and the timeouts of the product would expire.
const parallelTests = 2

// testCase is a script that runs in the guest, or the tests of a package.
type testCase struct {
	column string // column of the table
	name   string
	script string
	want   string // regular expression that the script's output must match
	limit  time.Duration
	tests  *suite.Suite
}

// columns contains the columns of the table in order.
var columns = []string{"demo as root", "demo as a user", "doctor", "in memory", "UDP sockets", "XDP", "tests"}

// cases returns the selected cases of the platform.
func (p platform) cases(ctx context.Context, o options) (cases []testCase, err error) {
	all := append(hostCases(o.short), programCases()...)
	for _, c := range all {
		if o.only.MatchString(c.name) && (!o.short || isShort[c.name]) {
			cases = append(cases, c)
		}
	}
	if o.short {
		return cases, nil
	}
	packages, err := suite.Packages(ctx, p.arch())
	if err != nil {
		return nil, err
	}
	for _, name := range packages {
		if isTool(name) {
			continue
		}
		tests := &suite.Suite{Name: name, Run: o.run, Arch: p.arch(), Folder: "/host/tree/" + name, Parallel: parallelTests, Lacking: true}
		if c := (testCase{column: "tests", name: "tests " + name, limit: o.timeout, tests: tests}); o.only.MatchString(c.name) {
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// notice is the text below the table.
const notice = `Tests whose binary links no function that depends on the kernel run on one machine of each architecture ("once").
Tests below hack/ do not run: they test developers' tools, which require Go.
`

// isTool reports whether a package is a developer's tool.
func isTool(name string) bool { return strings.HasPrefix(name, "hack/") }

// isShort lists the cases of -short.
var isShort = map[string]bool{"demo as root": true, "demo as a user": true, "in memory: ibv_rc_pingpong": true}

// hostCases returns the cases with roced's own commands.
func hostCases(short bool) []testCase {
	demo := "roced demo"
	if short {
		demo += " -n 500"
	}
	return []testCase{
		{column: "demo as root", name: "demo as root", script: demo, want: "(?m)^Everything is removed", limit: demoTime},
		{column: "demo as a user", name: "demo as a user", script: "user " + demo, want: "(?m)^Everything is removed", limit: demoTime},
		{column: "doctor", name: "doctor", script: "roced doctor", want: "(?m)^ok +AF_XDP", limit: programTime},
		{column: "doctor", name: "doctor as a user", script: "user roced doctor", limit: programTime},
		{column: "doctor", name: "doctor of an interface", script: "network=doctor; wired && ip netns exec doctor-server roced doctor -d eth0", want: "(?m)^ok +eth0 +is up", limit: programTime},
	}
}

// programCases returns the cases with unmodified C programs of rdma-core and perftest, over each network.
func programCases() (cases []testCase) {
	for _, network := range []struct{ column, name string }{{"in memory", "memory"}, {"UDP sockets", "udp"}, {"XDP", "xdp"}} {
		for _, program := range []struct{ name, script, want string }{
			{"ibv_devinfo", `at client roced exec -- ibv_devinfo`, `state:\s+PORT_ACTIVE`},
			{"ibv_rc_pingpong", `pair "ibv_rc_pingpong -g 0 -n 200" "ibv_rc_pingpong -g 0 -n 200 $name"`, `iters in`},
			{"ib_write_bw", `pair "ib_write_bw -n 500 -p 18601" "ib_write_bw -n 500 -p 18601 $name"`, `(?s)#bytes.*\n\s*\d+\s+\d+`},
			{"rping", `pair "rping -s -a $server -C 10 -V" "rping -c -a $server -C 10 -V -v"`, `ping data`},
			{"mckey", `group "mckey -m 239.1.1.7 -b $server" "mckey -m 239.1.1.7 -b $client -s"`, `return status 0`},
		} {
			cases = append(cases, testCase{
				column: network.column, name: network.column + ": " + program.name, want: program.want, limit: programTime,
				script: "network=" + network.name + "; services && " + program.script,
			})
		}
	}
	return cases
}

// prepare compiles the tests of a case. It reports whether they run once per architecture, because none of their system
// calls depends on the kernel.
func (c testCase) prepare(ctx context.Context, share *share) (once bool, err error) {
	if c.tests == nil {
		return false, nil
	}
	if err := share.build(ctx, c.tests); err != nil {
		return false, err
	}
	calls, err := c.tests.KernelCalls()
	return len(calls) == 0, err
}

// run runs a case. The note contains the numbers of tests.
func (c testCase) run(ctx context.Context, m *machine) (note, out string, err error) {
	if c.tests != nil {
		if _, err := m.run(ctx, programTime, ""); err != nil {
			return "", "", err
		}
		r := c.tests.Test(ctx, m.guest, c.limit)
		return fmt.Sprintf("%d passed, %d skipped", r.Passed, r.Skipped), r.Output, m.judge(r.Err)
	}
	out, err = m.run(ctx, c.limit, c.script)
	if err == nil && !regexp.MustCompile(c.want).MatchString(out) {
		err = fmt.Errorf("no %q in the output", c.want)
	}
	return "", out, err
}
