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

// testCase is one thing that must hold between roced and the peer.
type testCase struct {
	name string
	mtu  int  // of the link; 0 stands for standardMTU
	uso  bool // the peer's TAP hands trains on to it
	bad  bool // over a bad wire
	xdp  bool // about a way of sending that only XDP has
	// verbs: roced's end is this program, not one of roced's commands, so the host has to be a namespace.
	verbs bool
	// run runs the case and returns a short description of the result.
	run func(ctx context.Context, bed *testbed) (detail string, err error)
}

// bed is the testbed that it wants.
func (c *testCase) bed() bedKind { return bedKind{cmp.Or(c.mtu, standardMTU), c.uso, c.bad} }

// caseTime bounds a case, which takes a few seconds, and badTime one over a bad wire, where the peer waits for the end of
// its timers: that takes a minute on a machine with other work. They are there to end one that hangs.
const (
	caseTime = 90 * time.Second
	badTime  = 10 * time.Minute
)

// limit is the case's.
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

// try runs a case, captures its frames and has them judged.
func (l *testbed) try(ctx context.Context, c testCase) (detail string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit())
	defer cancel()
	if err := l.startCapture(); err != nil {
		return "", err
	}
	detail, err = c.run(ctx, l)
	verdict, judged := l.judge(context.WithoutCancel(ctx), c.name) // also of a case that took too long
	if err := errors.Join(err, judged); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; %s", detail, verdict), nil
}
