// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// withPeerJoined runs fn while the peer is a member of a group by an address with autojoin.
func (l *testbed) withPeerJoined(ctx context.Context, group netip.Addr, fn func() (string, error)) (detail string, err error) {
	address := fmt.Sprintf("%v/%d dev eth0", group, group.BitLen())
	if said, err := l.peer.Run(ctx, "ip addr add "+address+" autojoin"); err != nil {
		return "", fmt.Errorf("join the peer: %w: %s", err, said)
	}
	defer func() {
		_, endErr := l.peer.Run(context.WithoutCancel(ctx), "ip addr del "+address)
		err = errors.Join(err, endErr)
	}()
	if err := l.awaitMember(ctx, l.peerPort, group, nil); err != nil {
		return "", err
	}
	return fn()
}

// awaitMember waits until the switch lists a port as a member of a group. It fails if the program ends before.
func (l *testbed) awaitMember(ctx context.Context, port string, group netip.Addr, program *job.Job) error {
	return l.await(ctx, program, fmt.Sprintf("%s is not a member of group %v", port, group), func() (bool, error) {
		return l.bridge.Member(port, group)
	})
}

// awaitNoMember waits until a port has left a group.
func (l *testbed) awaitNoMember(ctx context.Context, port string, group netip.Addr) error {
	return l.await(ctx, nil, fmt.Sprintf("%s is still a member of group %v", port, group), func() (bool, error) {
		is, err := l.bridge.Member(port, group)
		return !is, err
	})
}

// awaitPeerReady waits until the peer's program is a member and attached, which the MAC shows that Soft-RoCE then adds
// to its NIC's filter (the wrong one for IPv4).
func (l *testbed) awaitPeerReady(ctx context.Context, group netip.Addr, program *job.Job) error {
	if err := l.awaitMember(ctx, l.peerPort, group, program); err != nil {
		return err
	}
	v4 := group.As4()
	mac := fmt.Sprintf("33:33:%02x:%02x:%02x:%02x", v4[0], v4[1], v4[2], v4[3])
	return l.await(ctx, program, "the peer's card does not pass "+mac, func() (bool, error) {
		said, err := l.peer.Run(ctx, "ip maddr show dev eth0")
		return strings.Contains(said, mac), err
	})
}

// await waits for a condition. It fails if the program ends before.
func (l *testbed) await(ctx context.Context, program *job.Job, missing string, is func() (bool, error)) error {
	for {
		ok, err := is()
		switch {
		case err != nil || ok:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", missing, ctx.Err())
		case program.Ended():
			said, err := program.Wait()
			return fmt.Errorf("%s, and the program ended (%v):\n%s", missing, err, tail(said))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// reports returns the messages of a port's host about a group, by IGMP or MLD.
func reports(frames []capture.Recorded, group netip.Addr) (list []capture.MembershipMessage) {
	for _, frame := range frames {
		if frame.Outgoing {
			continue
		}
		for _, m := range capture.MembershipMessages(frame.Data) {
			if m.Group == group && m.Kind != capture.Query {
				list = append(list, m)
			}
		}
	}
	return list
}

func describe(list []capture.MembershipMessage) string {
	if len(list) == 0 {
		return "no report"
	}
	joins, leaves := 0, 0
	for _, m := range list {
		if m.Kind == capture.Leave {
			leaves++
		} else {
			joins++
		}
	}
	return fmt.Sprintf("%s: %d reports, %d leaves", list[0].Protocol, joins, leaves)
}

// hostReports stops the capture, and returns an error unless roced sent a report and a leave for a member, or neither
// otherwise.
func (l *testbed) hostReports(group netip.Addr, member bool) (string, error) {
	if err := l.stopCapture(); err != nil {
		return "", err
	}
	list := reports(l.hostFrames, group)
	if !member && len(list) > 0 {
		return "", fmt.Errorf("a send-only member sent %s", describe(list))
	}
	if member && (len(list) < 2 || list[0].Kind != capture.Report || list[len(list)-1].Kind != capture.Leave) {
		return "", fmt.Errorf("a member sent %s, in the order %v", describe(list), list)
	}
	return describe(list), nil
}

// provePackets checks the packets that roced sent to a group, on the host's port.
func (l *testbed) provePackets(group netip.Addr, qkey verbs.QKey) error {
	mgid, count := wire.GIDFromAddr(group), 0
	for _, frame := range l.hostFrames {
		var p wire.Packet
		if frame.Outgoing || wire.Parse(frame.Data, &p) != wire.FaultNone || p.Destination() != mgid {
			continue
		}
		count++
		mac := wire.MulticastMAC(mgid)
		switch {
		case !bytes.Equal(frame.Data[:6], mac[:]):
			return fmt.Errorf("sent to MAC %x, want the group's %v", frame.Data[:6], mac)
		case p.BTH().DestQP() != verbs.MulticastQPN || p.DETH().QKey() != qkey:
			return fmt.Errorf("sent to QP %v with Q_Key %v", p.BTH().DestQP(), p.DETH().QKey())
		}
	}
	if count != groupCount {
		return fmt.Errorf("%d packets to %v on the wire, want %d: %w", count, group, groupCount, unix.EBADMSG)
	}
	return nil
}

// filters returns the multicast MACs in the output of ip maddr that belong to the group.
func filters(maddr string) string {
	var list []string
	v4 := groupIPv4.As4()
	end := fmt.Sprintf("%02x:%02x:%02x", v4[1]&0x7f, v4[2], v4[3])
	for _, word := range strings.Fields(maddr) {
		if strings.HasSuffix(word, end) {
			list = append(list, word)
		}
	}
	return strings.Join(list, " and ")
}

// complaint returns the first line of a program's output that reports a failure.
func complaint(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "fail") || strings.Contains(line, "error") || strings.Contains(line, "Invalid") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(text)
}
