// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// datagrams is a case with datagrams in one direction. All bytes are compared.
type datagrams struct {
	sizes   []int
	imm     bool
	route   verbs.GlobalRoute // traffic class, flow label and hop limit
	label   bool              // the kernel sets the flow label
	ipv6    bool
	toPeer  bool
	linkMTU int
}

// Message sizes at the boundaries: 0, the padding, a packet buffer, the MTU.
var (
	standardSizes = []int{0, 1, 3, 4, 63, 64, 1023, 1024}
	jumboSizes    = []int{0, 1, 3, 4, 63, 64, 1023, 1024, 1025, 2047, 2048, 2049, 3000, 4095, 4096}
)

// marked is a route without default values. The traffic class contains a DSCP and an ECN mark.
var marked = verbs.GlobalRoute{TrafficClass: 0x6a, FlowLabel: 0x12345, HopLimit: 7}

func udCases() (cases []testCase) {
	for _, ipv6 := range []bool{false, true} {
		for _, toPeer := range []bool{true, false} {
			for _, imm := range []bool{false, true} {
				cases = append(cases, datagrams{sizes: standardSizes, imm: imm, ipv6: ipv6, toPeer: toPeer}.testCase())
			}
			cases = append(cases, datagrams{sizes: []int{16, 64}, imm: true, ipv6: ipv6, toPeer: toPeer, route: marked}.testCase())
		}
	}
	return cases
}

func jumboCases() (cases []testCase) {
	for _, ipv6 := range []bool{false, true} {
		for _, toPeer := range []bool{true, false} {
			cases = append(cases, datagrams{sizes: jumboSizes, imm: toPeer, ipv6: ipv6, toPeer: toPeer, linkMTU: jumboMTU}.testCase())
		}
	}
	return cases
}

func (d datagrams) testCase() testCase {
	run := d.fromPeer
	words := []string{"ud", "to roced"}
	if d.toPeer {
		run, words[1] = d.send, "from roced"
	}
	if d.linkMTU == jumboMTU {
		words[0] = "ud jumbo"
	}
	words = append(words, family(d.ipv6))
	if d.imm {
		words = append(words, "immediate")
	}
	if d.route != (verbs.GlobalRoute{}) {
		words = append(words, "traffic class")
	}
	return testCase{name: strings.Join(words, ", "), mtu: d.linkMTU, run: run}
}

func family(ipv6 bool) string {
	if ipv6 {
		return "IPv6"
	}
	return "IPv4"
}

// payload returns message k of image/guest/ud.
func payload(k, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(16*k + 7*i + 13*(i>>8))
	}
	return data
}

// immediate returns the immediate data of message k.
func immediate(k int) uint32 { return 0xdeadbe00 + uint32(k) }

// send sends to the peer, and compares the messages that it prints.
func (d datagrams) send(ctx context.Context, l *testbed) (detail string, err error) {
	d.label = l.network == hca.NetworkUDP
	peer := ends(d.ipv6).peer
	receiver, qpn, err := l.receiver(ctx, len(d.sizes), peer, "")
	if err != nil {
		return "", err
	}
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ah, err := s.address(peer, d.route)
	if err != nil {
		return "", err
	}
	for k, size := range d.sizes {
		wr := verbs.SendWR{Opcode: verbs.WRSend, AH: ah, RemoteQPN: qpn, RemoteQKey: testQKey}
		if d.imm {
			wr.Opcode, wr.ImmData = verbs.WRSendWithImm, immediate(k)
		}
		if err := s.send(ctx, wr, payload(k, size)); err != nil {
			return "", fmt.Errorf("send %d bytes: %w", size, err)
		}
	}
	said, err := receiver.Wait()
	if err != nil {
		return "", fmt.Errorf("peer: %w: %s", err, said)
	}
	got, err := parseMessages(said)
	if err != nil {
		return "", err
	}
	return d.compare(got, s.qp.Number())
}

// receiver starts a receiver of n messages at an address of the peer, and returns when it has posted its receives.
func (l *testbed) receiver(ctx context.Context, n int, own netip.Addr, options string) (*job.Job, verbs.QPN, error) {
	receiver := l.peer.Start(ctx, fmt.Sprintf("ud recv -n %d -g %v %s", n, own, options))
	said, err := receiver.Saying(ctx, "\n")
	if err != nil {
		return nil, 0, fmt.Errorf("peer: %w", err)
	}
	var qpn verbs.QPN
	if _, err := fmt.Sscanf(said, "qpn %d", &qpn); err != nil {
		return nil, 0, fmt.Errorf("peer: %q: %w", said, err)
	}
	return receiver, qpn, nil
}

// parseMessages parses the output of image/guest/ud with the received messages.
func parseMessages(said string) (got []message, err error) {
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "got ") {
			continue
		}
		m, err := parseMessage(line)
		if err != nil {
			return nil, fmt.Errorf("peer: %q: %w", line, err)
		}
		got = append(got, m)
	}
	return got, nil
}

func parseMessage(line string) (m message, err error) {
	var length int
	var source uint32
	var imm, grh, data string
	if _, err := fmt.Sscanf(line, "got %d from %d imm %s grh %s data %s", &length, &source, &imm, &grh, &data); err != nil {
		return m, err
	}
	m.source = verbs.QPN(source)
	if imm != "none" {
		value, err := strconv.ParseUint(imm, 16, 32)
		if err != nil {
			return m, err
		}
		m.imm, m.hasImm = uint32(value), true
	}
	if m.grh, err = hex.DecodeString(grh); err != nil {
		return m, err
	}
	if data != "empty" {
		if m.data, err = hex.DecodeString(data); err != nil {
			return m, err
		}
	}
	if len(m.data) != length || len(m.grh) != wire.GRHLen {
		return m, fmt.Errorf("%d bytes of %d, GRH of %d: %w", len(m.data), length, len(m.grh), unix.EBADMSG)
	}
	return m, nil
}

// fromPeer sends from the peer, and compares the messages that roced receives.
func (d datagrams) fromPeer(ctx context.Context, l *testbed) (detail string, err error) {
	host, peer := ends(d.ipv6).host, ends(d.ipv6).peer
	s, err := l.newStation()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.postRecvs(len(d.sizes), stationBuffer); err != nil {
		return "", err
	}
	script := fmt.Sprintf("ud send -d %v -g %v -Q %d -t %d -l %d -H %d", host, peer, s.qp.Number(),
		d.route.TrafficClass, d.route.FlowLabel, max(d.route.HopLimit, 1))
	for k, size := range d.sizes {
		script += fmt.Sprintf(" %d", size)
		if d.imm {
			script += fmt.Sprintf(":%08x", immediate(k))
		}
	}
	said, err := l.peer.Run(ctx, script)
	if err != nil {
		return "", fmt.Errorf("peer: %w: %s", err, said)
	}
	var n int
	var qpn verbs.QPN
	if _, err := fmt.Sscanf(said, "sent %d from %d", &n, &qpn); err != nil {
		return "", fmt.Errorf("peer: %q: %w", said, err)
	}
	got, err := s.receive(ctx, len(d.sizes))
	if err != nil {
		return "", errors.Join(err, s.dropError())
	}
	return d.compare(got, qpn)
}

// compare compares received messages with the sent ones.
func (d datagrams) compare(got []message, source verbs.QPN) (detail string, err error) {
	host, peer := ends(d.ipv6).host, ends(d.ipv6).peer
	from, to := peer, host
	if d.toPeer {
		from, to = host, peer
	}
	if len(got) != len(d.sizes) {
		return "", fmt.Errorf("%d of %d messages arrived", len(got), len(d.sizes))
	}
	for k, m := range got {
		var wantImm uint32
		if d.imm {
			wantImm = immediate(k)
		}
		switch want := payload(k, d.sizes[k]); {
		case !bytes.Equal(m.data, want):
			err = fmt.Errorf("got %x, want %x", m.data, want)
		case m.hasImm != d.imm || m.imm != wantImm:
			err = fmt.Errorf("got immediate data %08x (%v), want %08x (%v)", m.imm, m.hasImm, wantImm, d.imm)
		case m.source != source:
			err = fmt.Errorf("got source QP %v, want %v", m.source, source)
		case m.grh.SGID() != wire.GIDFromAddr(from) || m.grh.DGID() != wire.GIDFromAddr(to):
			err = fmt.Errorf("got addresses %v to %v, want %v to %v", m.grh.SGID(), m.grh.DGID(), from, to)
		default:
			err = d.compareRoute(m.grh)
		}
		if err != nil {
			return "", fmt.Errorf("message %d of %d bytes: %w", k, d.sizes[k], err)
		}
	}
	sizes := strings.Trim(fmt.Sprint(slices.Compact(slices.Clone(d.sizes))), "[]")
	return sizes + " bytes", nil
}

// compareRoute compares the header fields that the case sets.
func (d datagrams) compareRoute(grh verbs.GRH) error {
	if d.route == (verbs.GlobalRoute{}) {
		return nil
	}
	if grh.TrafficClass() != d.route.TrafficClass {
		return fmt.Errorf("got traffic class %#x, want %#x", grh.TrafficClass(), d.route.TrafficClass)
	}
	if !d.toPeer { // Soft-RoCE always sends hop limit 64 and flow label 0
		return nil
	}
	if grh.HopLimit() != d.route.HopLimit {
		return fmt.Errorf("got hop limit %d, want %d", grh.HopLimit(), d.route.HopLimit)
	}
	if d.ipv6 && !d.label && grh.FlowLabel() != d.route.FlowLabel {
		return fmt.Errorf("got flow label %#x, want %#x", grh.FlowLabel(), d.route.FlowLabel)
	}
	return nil
}
