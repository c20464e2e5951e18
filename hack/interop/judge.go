// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/capture"
	"golang.org/x/sys/unix"
)

// startCapture starts to record the frames of both ports.
func (l *testbed) startCapture() (err error) {
	l.hostFrames, l.peerFrames = nil, nil
	if l.hostRecorder, err = capture.Record(l.bridge.Namespace, l.hostPort); err != nil {
		return err
	}
	if l.peerRecorder, err = capture.Record(l.bridge.Namespace, l.peerPort); err != nil {
		_, stopErr := l.hostRecorder.Stop()
		return errors.Join(err, stopErr)
	}
	return nil
}

// stopCapture stops the recording, if it is running, and sets hostFrames and peerFrames.
func (l *testbed) stopCapture() error {
	if l.hostRecorder == nil {
		return nil
	}
	var hostErr, peerErr error
	l.hostFrames, hostErr = l.hostRecorder.Stop()
	l.peerFrames, peerErr = l.peerRecorder.Stop()
	l.hostRecorder, l.peerRecorder = nil, nil
	if err := errors.Join(hostErr, peerErr); err != nil {
		return err
	}
	l.hostFrames, l.hostTrains, hostErr = cutTrains(l.hostFrames)
	l.peerFrames, l.peerTrains, peerErr = cutTrains(l.peerFrames)
	return errors.Join(hostErr, peerErr)
}

// cutTrains replaces trains by their packets, and counts the trains.
func cutTrains(frames []capture.Recorded) (all []capture.Recorded, trains int, err error) {
	for _, frame := range frames {
		if !frame.Unfinished.Train() {
			all = append(all, frame)
			continue
		}
		trains++
		packets, err := frame.Packets()
		if err != nil {
			return nil, trains, err
		}
		for _, packet := range packets {
			all = append(all, capture.Recorded{Frame: capture.Frame{Data: packet, Outgoing: frame.Outgoing}, Time: frame.Time})
		}
	}
	return all, trains, nil
}

// judge writes the frames of a case to files, and checks with package wire and with tshark that each RoCEv2 packet is
// valid and has the right ICRC.
func (l *testbed) judge(ctx context.Context, name string) (verdict string, err error) {
	if err := l.stopCapture(); err != nil {
		return "", err
	}
	base := filepath.Join(l.captures, strings.NewReplacer(" ", "_", ",", "").Replace(name))
	if _, err := examine(ctx, base+".host.pcap", l.hostFrames); err != nil {
		return "", err
	}
	return examine(ctx, base+".peer.pcap", l.peerFrames)
}

func examine(ctx context.Context, path string, frames []capture.Recorded) (verdict string, err error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(capture.WritePcap(file, frames), file.Close()); err != nil {
		return "", err
	}
	packets, err := parseAll(frames)
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	complaints, decoded, err := tshark(ctx, path)
	if err != nil {
		return "", err
	}
	if decoded != len(packets) {
		return "", fmt.Errorf("%s: tshark decoded %d RoCEv2 packets, package wire %d", filepath.Base(path), decoded, len(packets))
	}
	known := map[string]int{}
	for number, complaint := range complaints {
		reason := packets[number].excuses(complaint)
		if reason == "" {
			return "", fmt.Errorf("tshark on frame %d of %s: %s", number, filepath.Base(path), complaint)
		}
		known[reason]++
	}
	verdict = fmt.Sprintf("%d packets", len(packets))
	for _, reason := range slices.Sorted(maps.Keys(known)) {
		verdict += fmt.Sprintf(", %d %s", known[reason], reason)
	}
	return verdict, nil
}

// packet is a RoCEv2 packet as parsed by package wire.
type packet struct {
	empty, ipv6 bool
}

// False positives of tshark 4.0. The report mentions them.
const (
	tsharkEmpty    = "without payload (a)"
	tsharkChecksum = "UDP checksum 0 on IPv6 (b)"
)

// tsharkNotes explains the false positives.
const tsharkNotes = `(a) tshark reports a UD packet without payload as malformed, but it is valid.
(b) tshark warns of UDP checksum 0 over IPv6, which RoCEv2 packets have, including the peer's.`

// excuses returns the reason if a complaint about a packet is a false positive, or "".
func (p *packet) excuses(complaint string) string {
	switch {
	case p == nil:
		return ""
	case p.empty && strings.Contains(complaint, "Malformed"):
		return tsharkEmpty
	case p.ipv6 && complaint == "Illegal checksum value (0)":
		return tsharkChecksum
	}
	return ""
}

// parseAll parses the RoCEv2 packets. The keys are frame numbers from 1.
func parseAll(frames []capture.Recorded) (map[int]*packet, error) {
	packets := map[int]*packet{}
	for i, frame := range frames {
		var p wire.Packet
		switch fault := wire.Parse(frame.Data, &p); {
		case fault == wire.FaultNotRoCE:
			continue
		case fault != wire.FaultNone:
			return nil, fmt.Errorf("frame %d: %v: %w", i+1, fault, unix.EBADMSG)
		case !p.CheckICRC():
			return nil, fmt.Errorf("frame %d: wrong ICRC: %w", i+1, unix.EBADMSG)
		}
		packets[i+1] = &packet{empty: len(p.Payload()) == 0, ipv6: p.IsIPv6()}
	}
	return packets, nil
}

// payloadProtocols contains protocols that tshark detects heuristically in RoCEv2 payloads. The programs' data are
// random bytes, in which it would report invalid Ethernet frames.
var payloadProtocols = []string{
	"ethertype", "fcoib", "infiniband.eoib", "infiniband_sdp", "iser", "lnet", "nvme-rdma", "rpcordma", "smb_direct", "smc",
}

// tshark decodes a file. It returns tshark's complaints about RoCEv2, IGMP and MLD by frame number, and the number of
// decoded RoCEv2 packets.
func tshark(ctx context.Context, path string) (complaints map[int]string, decoded int, err error) {
	args := []string{
		"-r", path, "-Y", "udp.dstport == 4791 || igmp || icmpv6",
		"-T", "fields", "-e", "frame.number", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed", "-e", "_ws.expert.severity", "-e", "_ws.expert.message",
	}
	for _, protocol := range payloadProtocols {
		args = append(args, "--disable-protocol", protocol)
	}
	cmd := exec.CommandContext(ctx, "tshark", args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("tshark (Debian package tshark): %w: %s", err, &said)
	}
	complaints = map[int]string{}
	for line := range strings.Lines(string(out)) {
		field := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(field) < 5 {
			return nil, 0, fmt.Errorf("tshark wrote %q: %w", line, unix.EBADMSG)
		}
		number, err := strconv.Atoi(field[0])
		if err != nil {
			return nil, 0, err
		}
		if field[1] != "" {
			decoded++
		}
		if field[2] != "" || grave(field[3]) {
			complaints[number] = strings.TrimSpace(field[2] + " " + field[4])
		}
	}
	return complaints, decoded, nil
}

// grave reports whether one of the severities of a frame is a warning or worse.
func grave(severities string) bool {
	for _, text := range strings.Split(severities, ",") {
		severity, err := strconv.ParseUint(text, 0, 32)
		if err == nil && severity >= 0x00600000 {
			return true
		}
	}
	return false
}
