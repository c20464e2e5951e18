// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// mishap is an invalid message from the peer. Exactly one drop counter must count it, and the valid message after it
// must arrive.
type mishap struct {
	name    string
	options string // options of image/guest/ud
	spec    string // specification of the invalid message
	receive int    // length of each posted buffer, including 40 bytes for the GRH
	counter string
}

func mishapCases() (cases []testCase) {
	for _, m := range []mishap{
		{"wrong Q_Key", "-q 0x22222222", "16", 256, "qkey"},
		{"privileged Q_Key", "-q 0x80010000", "16", 256, "qkey"},
		{"unknown QPN", "-Q 0xabcdef", "16", 256, "drop_unknown_qp"},
		{"longer than the posted buffer", "", "1024", 256, "no_room"},
		{"no receive posted", "", "64", 0, "no_receive"},
	} {
		cases = append(cases, testCase{name: "mishap, " + m.name, run: m.run})
	}
	return cases
}

func (m mishap) run(ctx context.Context, l *testbed) (detail string, err error) {
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if m.receive > 0 {
		if err := s.postRecvs(2, m.receive); err != nil {
			return "", err
		}
	}
	good := fmt.Sprintf("ud send -d %v -g %v -Q %d ", hostIPv4, peerIPv4, s.qp.Number())
	if out, err := l.peer.Run(ctx, good+m.options+" "+m.spec); err != nil {
		return "", fmt.Errorf("peer: %w: %s", err, out)
	}
	if l.network == hca.NetworkUDP { // only the engine drops packets
		m.counter = strings.TrimPrefix(m.counter, "drop_")
	}
	want := map[string]uint64{m.counter: 1}
	if err := s.waitDrops(ctx, want); err != nil {
		return "", err
	}
	if m.receive == 0 {
		if err := s.postRecvs(2, stationBuffer); err != nil {
			return "", err
		}
	}
	if out, err := l.peer.Run(ctx, good+"64"); err != nil {
		return "", fmt.Errorf("peer: %w: %s", err, out)
	}
	got, err := s.receive(ctx, 1)
	if err != nil {
		return "", errors.Join(err, s.dropError())
	}
	if !bytes.Equal(got[0].data, payload(0, 64)) {
		return "", fmt.Errorf("got %x as the valid message", got[0].data)
	}
	var none [1]verbs.WC
	if n, err := s.cq.Poll(none[:]); n > 0 || err != nil {
		return "", fmt.Errorf("%d unexpected completions: %+v (%v)", n, none, err)
	}
	if err := s.waitDrops(ctx, want); err != nil {
		return "", err
	}
	return fmt.Sprintf("dropped as %q, the next message arrived", m.counter), nil
}

// waitDrops waits until the drop counters equal want.
func (s *station) waitDrops(ctx context.Context, want map[string]uint64) error {
	for {
		drops, err := s.drops()
		if err != nil || maps.Equal(drops, want) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dropped %v, want %v", drops, want)
		case <-time.After(5 * time.Millisecond):
		}
		if len(drops) > 0 {
			return fmt.Errorf("dropped %v, want %v", drops, want)
		}
	}
}
