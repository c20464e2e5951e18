// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// refusal is an unmodified program of rdma_cm that the peer runs against a card without listeners. It must be rejected
// immediately.
type refusal struct {
	program string // with the arguments before the address
	ipv6    bool
	says    string
}

func refusalCases() (cases []testCase) {
	for _, r := range []refusal{
		{"rping -c -C 1 -a", false, "RDMA_CM_EVENT_REJECTED, error 8"},
		{"rping -c -C 1 -a", true, "RDMA_CM_EVENT_REJECTED, error 8"},
		{"ucmatose -c 1 -C 1 -s", false, "RDMA_CM_EVENT_REJECTED, error: 8"},
		{"udaddy -c 1 -C 1 -s", false, "RDMA_CM_EVENT_UNREACHABLE, error: 1"},
		{"udaddy -c 1 -C 1 -s", true, "RDMA_CM_EVENT_UNREACHABLE, error: 1"},
	} {
		program, _, _ := strings.Cut(r.program, " ")
		cases = append(cases, testCase{name: "refusal, " + program + ", " + family(r.ipv6), run: r.run})
	}
	return cases
}

func (r refusal) run(ctx context.Context, l *testbed) (detail string, err error) {
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out, _ := l.peer.Run(ctx, r.command(ends(r.ipv6).host)) // the program must fail
	if !strings.Contains(out, r.says) {
		return "", fmt.Errorf("output of the peer's %s:\n%s", r.program, tail(out))
	}
	if err := l.stopCapture(); err != nil {
		return "", err
	}
	packets, err := parseAll(l.peerFrames)
	if err != nil {
		return "", err
	}
	if len(packets) != 2 {
		return "", fmt.Errorf("got %d packets, want a request and its rejection", len(packets))
	}
	return "rejected after one request", nil
}

func (r refusal) command(host netip.Addr) string { return fmt.Sprintf("%s %v 2>&1", r.program, host) }
