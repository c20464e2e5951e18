// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
)

// The groups, and the number and size of messages to them.
var (
	groupIPv4 = netip.MustParseAddr("239.77.0.1")
	groupIPv6 = netip.MustParseAddr("ff0e::77:1")
)

const (
	groupCount = 4
	groupSize  = 64 // bytes
)

func mcastCases() []testCase {
	return []testCase{
		{name: "multicast, from roced, full member, to mckey", run: fromRocedToMckey(false)},
		{name: "multicast, from roced, send-only, to mckey", run: fromRocedToMckey(true)},
		{name: "multicast, from mckey, full member, to roced", run: fromMckeyToRoced(false)},
		{name: "multicast, from mckey -o, to roced", run: fromMckeyToRoced(true)},
		{name: "multicast, from roced, by a connection id, to mckey", run: fromRocedToMckey(false, "--cm")},
		{name: "multicast, from roced, by a send-only connection id, to mckey", run: fromRocedToMckey(true, "--cm")},
		{name: "multicast, from mckey, to roced, by a connection id", run: fromMckeyToRoced(false, "--cm")},
		{name: "multicast, attached but not joined, IPv4", run: attachedOnly},
		{name: "multicast, from roced, IPv6, to pyverbs", run: fromRocedIPv6},
		{name: "multicast, from pyverbs, IPv6, to roced", verbs: true, run: toRocedIPv6},
	}
}

// mckey starts rdma-core's mckey on the peer. It joins the group with rdma_cm, which sends IGMP for IPv4.
func (l *testbed) mckey(ctx context.Context, options string) *job.Job {
	command := fmt.Sprintf("mckey -m %v -b %v -C %d -S %d %s", groupIPv4, peerIPv4, groupCount, groupSize, options)
	if !strings.HasPrefix(l.kernel, "6.1.") {
		// When a program destroys its queue pair, later kernels drop its unsent packets. So the peer waits before each
		// command to the kernel.
		command = "strace -qq -o /dev/null -e trace=write,ioctl -e inject=write,ioctl:delay_enter=50ms " + command
	}
	return l.peer.Start(ctx, command)
}

// fromRocedToMckey sends from roced to a group that the peer has joined.
func fromRocedToMckey(sendOnly bool, more ...any) func(context.Context, *testbed) (string, error) {
	return func(ctx context.Context, l *testbed) (detail string, err error) {
		receiver := l.mckey(ctx, "")
		if err := l.awaitPeerReady(ctx, groupIPv4, receiver); err != nil {
			return "", err
		}
		maddr, err := l.peer.Run(ctx, "ip maddr show dev eth0")
		if err != nil {
			return "", err
		}
		// At this rate roced stays a member for longer than the kernel's delay before the report.
		arguments := []any{groupIPv4, "--send", "--count", groupCount, "--size", groupSize, "--rate", 20, "--json"}
		arguments = append(arguments, more...)
		if sendOnly {
			arguments = append(arguments, "--send-only")
		}
		if _, _, err := both(l.onHost(ctx, "mcast", arguments...), receiver); err != nil {
			return "", err
		}
		reported, err := l.hostReports(groupIPv4, !sendOnly)
		if err != nil {
			return "", err
		}
		if err := l.provePackets(groupIPv4, 0x01234567); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d of %d arrived; roced sent %s; peer's filter: %s", groupCount, groupCount, reported, filters(maddr)), nil
	}
}

// fromMckeyToRoced sends from the peer to a group that roced has joined.
func fromMckeyToRoced(sendOnly bool, more ...any) func(context.Context, *testbed) (string, error) {
	return func(ctx context.Context, l *testbed) (detail string, err error) {
		receiver := l.onHost(ctx, "mcast", append([]any{groupIPv4, "--count", groupCount, "--json"}, more...)...)
		if err := l.awaitMember(ctx, l.hostPort, groupIPv4, receiver); err != nil {
			return "", err
		}
		options := "-s"
		if sendOnly {
			options = "-s -o"
		}
		said, _, err := both(receiver, l.mckey(ctx, options))
		if err != nil {
			return "", err
		}
		if err := compareGroupMessages(said); err != nil {
			return "", err
		}
		reported, err := l.hostReports(groupIPv4, true)
		if err != nil {
			return "", err
		}
		peers := reports(l.peerFrames, groupIPv4)
		if sendOnly && len(peers) > 0 {
			return "", fmt.Errorf("the peer's send-only member sent %v", peers)
		}
		return fmt.Sprintf("%d of %d arrived; roced sent %s; the peer %s", groupCount, groupCount, reported, describe(peers)), nil
	}
}

// compareGroupMessages checks the output of roced mcast --json. mckey's immediate data is its QPN.
func compareGroupMessages(said string) error {
	count := 0
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "time=") { // log lines: the links of some cards go down and up when XDP starts
			continue
		}
		var m struct {
			From, GID string
			QPN       uint32
			Size      int
			Immediate *uint32
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return fmt.Errorf("roced mcast wrote %q: %w", line, err)
		}
		if m.From == "" {
			continue // the first and the last line
		}
		count++
		if m.From != peerIPv4.String() || m.Size != groupSize || m.Immediate == nil || *m.Immediate != m.QPN {
			return fmt.Errorf("unexpected message from the peer's QP: %q", line)
		}
	}
	if count != groupCount {
		return fmt.Errorf("%d of %d messages arrived:\n%s", count, groupCount, said)
	}
	return nil
}

// attachedOnly documents a bug of Soft-RoCE: if it is attached to an IPv4 group without being a member, it receives
// nothing, since it adds the wrong MAC to its NIC's filter. As a member it receives the messages.
func attachedOnly(ctx context.Context, l *testbed) (detail string, err error) {
	options := fmt.Sprintf("-m %v -w 2", groupIPv4)
	send := func() error {
		_, err := l.onHost(ctx, "mcast", groupIPv4, "--send", "--send-only", "--count", groupCount, "--qkey", testQKey).Wait()
		return err
	}
	receiver, _, err := l.receiver(ctx, groupCount, peerIPv4, options)
	if err != nil {
		return "", err
	}
	maddr, err := l.peer.Run(ctx, "ip maddr show dev eth0")
	if err != nil {
		return "", err
	}
	if err := send(); err != nil {
		return "", err
	}
	alone, err := receiver.Wait()
	if err == nil {
		return "", fmt.Errorf("the peer received all messages without being a member, so the bug of Soft-RoCE is fixed; update this case:\n%s", tail(alone))
	}
	return l.withPeerJoined(ctx, groupIPv4, func() (string, error) {
		receiver, _, err := l.receiver(ctx, groupCount, peerIPv4, fmt.Sprintf("-m %v", groupIPv4))
		if err != nil {
			return "", err
		}
		if err := send(); err != nil {
			return "", err
		}
		if said, err := receiver.Wait(); err != nil {
			return "", fmt.Errorf("peer, a member: %w: %s", err, tail(said))
		}
		return fmt.Sprintf("not joined, the peer's filter has %s and it receives nothing; joined (ip addr add … autojoin) all %d", filters(maddr), groupCount), nil
	})
}

// fromRocedIPv6 sends from roced to an IPv6 group. The kernel's rdma_cm refuses IPv6 groups over RoCEv2, so the peer
// attaches by verbs, and joins by an address.
func fromRocedIPv6(ctx context.Context, l *testbed) (detail string, err error) {
	refused, err := l.peer.Run(ctx, fmt.Sprintf("mckey -m %v -b %v -C 1", groupIPv6, peerIPv6))
	if err == nil {
		return "", errors.New("mckey joined an IPv6 group, which earlier kernels refused; update this case")
	}
	return l.withPeerJoined(ctx, groupIPv6, func() (string, error) {
		receiver, _, err := l.receiver(ctx, groupCount, peerIPv6, fmt.Sprintf("-m %v", groupIPv6))
		if err != nil {
			return "", err
		}
		sender := l.onHost(ctx, "mcast", groupIPv6, "--send", "--send-only", "--count", groupCount, "--size", groupSize, "--qkey", testQKey)
		_, said, err := both(sender, receiver)
		if err != nil {
			return "", err
		}
		got, err := parseMessages(said)
		if err != nil {
			return "", err
		}
		for _, m := range got {
			if m.grh.DGID() != wire.GIDFromAddr(groupIPv6) || m.grh.SGID() != wire.GIDFromAddr(hostIPv6) || !m.hasImm {
				return "", fmt.Errorf("%+v arrived", m)
			}
		}
		reported, err := l.hostReports(groupIPv6, false)
		if err != nil {
			return "", err
		}
		if err := l.provePackets(groupIPv6, testQKey); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d of %d arrived; roced sent %s; mckey refuses (%s)", len(got), groupCount, reported, complaint(refused)), nil
	})
}

// toRocedIPv6 sends from the peer by verbs, which requires no join.
func toRocedIPv6(ctx context.Context, l *testbed) (detail string, err error) {
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.postRecvs(groupCount, stationBuffer); err != nil {
		return "", err
	}
	membership, err := s.JoinMulticast(groupIPv6, verbs.JoinFullMember)
	if err != nil {
		return "", err
	}
	if err := s.qp.AttachMcast(membership.MGID(), membership.MLID()); err != nil {
		return "", err
	}
	if err := l.awaitMember(ctx, l.hostPort, groupIPv6, nil); err != nil {
		return "", err
	}
	if said, err := l.peer.Run(ctx, fmt.Sprintf("ud send -d %v -g %v 0 1 64 1024", groupIPv6, peerIPv6)); err != nil {
		return "", fmt.Errorf("peer: %w: %s", err, said)
	}
	got, err := s.receive(ctx, groupCount)
	if err != nil {
		return "", errors.Join(err, s.dropError())
	}
	for k, size := range []int{0, 1, 64, 1024} {
		if m := got[k]; !bytes.Equal(m.data, payload(k, size)) || m.grh.DGID() != wire.GIDFromAddr(groupIPv6) {
			return "", fmt.Errorf("unexpected message %+v as number %d", m, k)
		}
	}
	if err := errors.Join(s.qp.DetachMcast(membership.MGID(), membership.MLID()), membership.Close()); err != nil {
		return "", err
	}
	if err := l.awaitNoMember(ctx, l.hostPort, groupIPv6); err != nil {
		return "", err
	}
	reported, err := l.hostReports(groupIPv6, true)
	return fmt.Sprintf("%d of %d arrived; roced sent %s", len(got), groupCount, reported), err
}
