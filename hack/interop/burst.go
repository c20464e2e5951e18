// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// burst is a case with many datagrams of one size from roced, in lists that can be sent as trains. The peer compares
// each datagram and reports after each list, since it is emulated and has 64 receives.
type burst struct {
	size  int
	ipv6  bool
	group bool
	mode  hca.SendMode
	uso   bool // the peer's kernel receives the trains and segments them
}

const (
	burstCount  = 2048
	burstWindow = 32 // messages per list
)

func burstCases() (cases []testCase) {
	for _, size := range []int{64, 1024} {
		for _, ipv6 := range []bool{false, true} {
			for _, b := range []burst{
				{mode: hca.SendTrains}, {mode: hca.SendTrains, group: true}, {mode: hca.SendAuto},
				{mode: hca.SendTrains, uso: true}, {mode: hca.SendTrains, uso: true, group: true}, {mode: hca.SendAuto, uso: true},
			} {
				b.size, b.ipv6 = size, ipv6
				cases = append(cases, testCase{name: b.name(), uso: b.uso, xdp: b.mode != hca.SendAuto, run: b.run})
			}
		}
	}
	return cases
}

func (b burst) name() string {
	name := fmt.Sprintf("burst, %s, %s, %d bytes", b.mode, family(b.ipv6), b.size)
	if b.group {
		name += ", multicast"
	}
	if b.uso {
		name += ", USO"
	}
	return name
}

// dest returns the destination address.
func (b burst) dest() netip.Addr {
	switch {
	case b.group && b.ipv6:
		return groupIPv6
	case b.group:
		return groupIPv4
	}
	return ends(b.ipv6).peer
}

func (b burst) run(ctx context.Context, l *testbed) (detail string, err error) {
	if b.group { // attaching by verbs does not join the group
		return l.withPeerJoined(ctx, b.dest(), func() (string, error) { return b.exchange(ctx, l) })
	}
	return b.exchange(ctx, l)
}

// exchange sends the datagrams. The peer's card counts the packets with a valid ICRC.
func (b burst) exchange(ctx context.Context, l *testbed) (detail string, err error) {
	options := fmt.Sprintf("-b %d", burstWindow)
	if b.group {
		options += fmt.Sprintf(" -m %v", b.dest())
	}
	receiver, qpn, err := l.receiver(ctx, burstCount, ends(b.ipv6).peer, options)
	if err != nil {
		return "", err
	}
	if b.group {
		qpn = verbs.MulticastQPN
	}
	before, err := l.peerReceived(ctx)
	if err != nil {
		return "", err
	}
	trains, err := b.send(ctx, l, receiver, qpn)
	if err != nil {
		return "", err
	}
	said, err := receiver.Wait()
	if want := fmt.Sprintf("all %d of %d bytes", burstCount, b.size); err != nil || !strings.Contains(said, want) {
		return "", fmt.Errorf("peer: %v:\n%s", err, tail(said))
	}
	after, err := l.peerReceived(ctx)
	if err != nil {
		return "", err
	}
	if after-before != burstCount {
		return "", fmt.Errorf("the peer's card counted %d packets, want %d", after-before, burstCount)
	}
	if err := l.stopCapture(); err != nil {
		return "", err
	}
	leave := b.inTrains(l)
	if (l.hostTrains > 0) != leave || (l.peerTrains > 0) != (leave && b.uso) {
		return "", fmt.Errorf("%d trains arrived at the bridge, %d at the peer", l.hostTrains, l.peerTrains)
	}
	return fmt.Sprintf("%d messages, in %d trains, of which %d reached the peer", burstCount, trains, l.peerTrains), nil
}

// send sends the lists one after the other, and counts the trains.
func (b burst) send(ctx context.Context, l *testbed, receiver *job.Job, qpn verbs.QPN) (trains uint64, err error) {
	s, err := l.newStation(l.sending(b.mode)...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ah, err := s.address(b.dest(), verbs.GlobalRoute{})
	if err != nil {
		return 0, err
	}
	for sent := 0; sent < burstCount; sent += burstWindow {
		if err := s.sendList(ctx, verbs.SendWR{Opcode: verbs.WRSendWithImm, AH: ah, RemoteQPN: qpn, RemoteQKey: testQKey}, sent, b.size); err != nil {
			return 0, err
		}
		if _, err := receiver.Saying(ctx, fmt.Sprintf("came %d\n", sent+burstWindow)); err != nil {
			return 0, errors.Join(err, s.dropError())
		}
	}
	return b.trains(s, l)
}

// inTrains reports whether packets must be sent in trains. Over XDP this is the case in mode "trains" only: automatic
// mode does not use them, since the other end of the host's link is a bridge, which forwards trains.
func (b burst) inTrains(l *testbed) bool {
	return b.mode == hca.SendTrains || l.network == hca.NetworkUDP
}

// trains returns the number of sent trains. It returns an error unless no packet was sent in a train, or all except at
// most one per list.
func (b burst) trains(s *station, l *testbed) (uint64, error) {
	statistics, err := s.card.Statistics()
	if err != nil {
		return 0, err
	}
	sent := statistics.Sent
	most, alone := uint64(0), uint64(0)
	if b.inTrains(l) {
		most, alone = burstCount, burstCount/burstWindow
	}
	if sent.InTrains > most || sent.InTrains+alone < most {
		return 0, fmt.Errorf("%d packets were sent in trains, want %d, or at most %d less", sent.InTrains, most, alone)
	}
	return sent.Trains, nil
}

// sendList sends a list of messages of one size, with numbers as immediate data, and waits for their completions.
func (s *station) sendList(ctx context.Context, like verbs.SendWR, first, size int) error {
	wrs := make([]verbs.SendWR, burstWindow)
	for i := range wrs {
		copy(s.mr.Bytes()[i*stationBuffer:], payload(first+i, size))
		wrs[i] = like
		wrs[i].ImmData, wrs[i].SGList = uint32(first+i), []verbs.SGE{s.mr.SGE(i*stationBuffer, size)}
	}
	wrs[burstWindow-1].Flags |= verbs.SendSignaled
	if err := s.qp.PostSend(wrs); err != nil {
		return err
	}
	var wcs [1]verbs.WC
	if _, err := s.cq.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	return wcs[0].Err()
}

// peerReceived returns the number of packets that the peer's card has accepted. Packets with a wrong ICRC do not count.
func (l *testbed) peerReceived(ctx context.Context) (packets uint64, err error) {
	said, err := l.peer.Run(ctx, "sleep 0.05; cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts")
	if err != nil {
		return 0, fmt.Errorf("the peer's counters: %w: %s", err, said)
	}
	return strconv.ParseUint(strings.TrimSpace(said), 10, 64)
}
