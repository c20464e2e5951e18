// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// packets returns captured packets from the host to the peer with payloads of 64 bytes.
func packets(count int) (frames []capture.Recorded) { return packetsOf(count, make([]byte, 64)) }

// packetsOf returns captured packets with a given payload.
func packetsOf(count int, payload []byte) (frames []capture.Recorded) {
	template := wire.NewTemplate(wire.Path{Source: wire.GIDFromAddr(hostIPv4), Dest: wire.GIDFromAddr(netip.MustParseAddr("10.98.0.2"))})
	for i := range count {
		frame := make([]byte, wire.MaxHeaders+len(payload)+wire.MaxTrailer)
		copy(frame[template.PayloadOffset(false):], payload)
		d := wire.Datagram{DestQP: 7, SourceQP: 3, QKey: testQKey, PKey: wire.PKeyDefault, ID: uint16(i), PSN: wire.PSN(i)}
		frames = append(frames, capture.Recorded{Frame: capture.Frame{Data: frame[:template.Seal(frame, &d, len(payload))]}})
	}
	return frames
}

// TestParseAllChecksICRC checks that a flipped bit in a packet is detected.
func TestParseAllChecksICRC(t *testing.T) {
	frames := packets(2)
	if got, err := parseAll(frames); err != nil || len(got) != 2 {
		t.Fatalf("%d packets, %v", len(got), err)
	}
	last := frames[1].Data
	last[len(last)-10] ^= 1
	if _, err := parseAll(frames); !errors.Is(err, unix.EBADMSG) {
		t.Errorf("a wrong ICRC: %v", err)
	}
}

// TestPayloadIsNotJudged checks that tshark does not decode payloads. The payload, from ib_send_lat, looks like an EoIB
// frame from a group's address.
func TestPayloadIsNotJudged(t *testing.T) {
	needs.Tools(t, "tshark")
	payload := []byte("\xc5\x00\x28\xb5\x5e\xdd\xa8\x1b\x42\xfb\x17\xaa\x4d\xb2\x59\x93\xc7\xec\xd1\x13\x1c\x77\x71\x8a\x06\x46\x17\x22\x0c\x3f\x77\xd1")
	if _, err := examine(t.Context(), filepath.Join(t.TempDir(), "case.pcap"), packetsOf(1, payload)); err != nil {
		t.Error(err)
	}
}

// TestCutTrains checks that a train is replaced by its packets.
func TestCutTrains(t *testing.T) {
	const headers = 14 + 20 + 8
	var train capture.Recorded
	for _, frame := range packets(3) {
		if train.Data == nil {
			train.Data = slices.Clone(frame.Data[:headers])
		}
		train.Data = append(train.Data, frame.Data[headers:]...)
	}
	single := packets(1)[0]
	train.Unfinished[0], train.Unfinished[1] = 1, 5 // partial checksum, UDP segmentation
	for offset, value := range map[int]int{4: len(single.Data) - headers, 6: headers - 8, 8: 6} {
		binary.NativeEndian.PutUint16(train.Unfinished[offset:], uint16(value))
	}
	all, trains, err := cutTrains([]capture.Recorded{single, train})
	if err != nil || len(all) != 4 || trains != 1 {
		t.Fatalf("%d packets, %d trains, %v", len(all), trains, err)
	}
	if got, err := parseAll(all); err != nil || len(got) != 4 {
		t.Errorf("%d packets, %v", len(got), err)
	}
}
