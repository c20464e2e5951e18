// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// testCase is a test of roced with the peer.
type testCase struct {
	name string
	mtu  int  // MTU of the link; 0 means standardMTU
	uso  bool // the peer's TAP passes trains on
	bad  bool // with a lossy wire (lab.BadWire)
	xdp  bool // tests a send mode that only XDP has
	// verbs is set if roced's end is this program instead of a roced command. Then the host has to be a namespace.
	verbs bool
	// run runs the case and returns a short description of the result.
	run func(ctx context.Context, bed *testbed) (detail string, err error)
}

// bed returns the kind of testbed that the case requires.
func (c *testCase) bed() bedKind { return bedKind{cmp.Or(c.mtu, standardMTU), c.uso, c.bad} }

// Time limits, which end cases that hang. A case takes a few seconds. With a lossy wire it takes up to a minute on a
// busy machine, because of the peer's timers.
const (
	caseTime = 90 * time.Second
	badTime  = 10 * time.Minute
)

// limit returns the time limit of the case.
func (c *testCase) limit() time.Duration {
	if c.bad {
		return badTime
	}
	return caseTime
}

func allCases() []testCase {
	byVerbs := slices.Concat(udCases(), burstCases(), mishapCases(), refusalCases(), udaddyCases(), idProgramCases(), badWireCases(), jumboCases())
	for i := range byVerbs {
		byVerbs[i].verbs = true
	}
	return slices.Concat(byVerbs, pingpongCases(), mcastCases(), perftestCases(), connectionCases())
}

// try runs a case, and captures and judges its frames.
func (l *testbed) try(ctx context.Context, c testCase) (detail string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit())
	defer cancel()
	if err := l.startCapture(); err != nil {
		return "", err
	}
	detail, err = c.run(ctx, l)
	verdict, judged := l.judge(context.WithoutCancel(ctx), c.name) // also after the time limit
	if err := errors.Join(err, judged); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; %s", detail, verdict), nil
}
