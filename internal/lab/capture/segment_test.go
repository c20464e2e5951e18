// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Trains of three packets with payloads "abcd", "efgh" and "ij".
const (
	trainIPv4 = "020000000002 020000000001 0800 " + "4500 0026 fffe 4000 4011 0000 0a4d0001 0a4d0002 " + "c000 12b7 0012 0000 " + "6162636465666768696a"
	trainIPv6 = "020000000002 020000000001 8100 002a 86dd " + "60000000 0012 11 40 fd770000000000000000000000000001 fd770000000000000000000000000002 " +
		"c000 12b7 0012 0000 " + "6162636465666768696a"
)

// unfinished is the header of a train with segments of 4 bytes.
func unfinished(udp uint16) (u Unfinished) {
	u[0], u[1] = 1, 5
	for offset, value := range map[int]uint16{2: 9999, 4: 4, 6: udp, 8: 6} {
		binary.NativeEndian.PutUint16(u[offset:], value)
	}
	return u
}

func TestPacketsOfATrain(t *testing.T) {
	for _, row := range []struct {
		frame   string
		udp, ip int
	}{{trainIPv4, 34, 14}, {trainIPv6, 58, 18}} {
		whole := frame(t, row.frame)
		u := unfinished(uint16(row.udp))
		packets, err := u.Packets(whole)
		if err != nil || len(packets) != 3 {
			t.Fatalf("%d packets, %v", len(packets), err)
		}
		for i, payload := range []string{"abcd", "efgh", "ij"} {
			p := packets[i]
			if has, right := ChecksumRight(p); !has || !right || string(p[row.udp+8:]) != payload || !bytes.Equal(p[:row.ip], whole[:row.ip]) {
				t.Errorf("packet %d is % x", i, p)
			}
			length := binary.BigEndian.Uint16(p[row.udp+4:])
			if ip := p[row.ip:row.udp]; int(length) != 8+len(payload) || ip[0]>>4 == 4 && (binary.BigEndian.Uint16(ip[2:]) != 20+length ||
				binary.BigEndian.Uint16(ip[4:]) != 0xfffe+uint16(i) || sum(ip) != 0xffff) {
				t.Errorf("packet %d has the headers % x", i, p[row.ip:row.udp+8])
			}
		}
	}
}

// TestPacketsOfAFrame: a frame that is not a train is returned unchanged.
func TestPacketsOfAFrame(t *testing.T) {
	whole := frame(t, trainIPv4)
	var none Unfinished
	if packets, err := none.Packets(whole); err != nil || len(packets) != 1 || !bytes.Equal(packets[0], whole) {
		t.Errorf("% x, %v", packets, err)
	}
	single := unfinished(34)
	single[1] = 0
	packets, err := single.Packets(whole)
	if err != nil || len(packets) != 1 || !bytes.Equal(packets[0][42:], whole[42:]) {
		t.Fatalf("% x, %v", packets, err)
	}
	if has, right := ChecksumRight(packets[0]); !has || !right {
		t.Error("the checksum is missing or wrong")
	}
	packets[0][50]++
	if _, right := ChecksumRight(packets[0]); right {
		t.Error("a changed packet has the right checksum")
	}
}

// TestPacketsOfOddFrames: a frame without UDP directly after its first IP header is returned unchanged as one packet.
// It may be a tunnelled packet, another protocol, or truncated.
func TestPacketsOfOddFrames(t *testing.T) {
	whole := frame(t, trainIPv4)
	icmp, arp, options := bytes.Clone(whole), bytes.Clone(whole), bytes.Clone(whole)
	icmp[23], arp[13], options[14] = unix.IPPROTO_ICMP, 6, 0x46
	for name, row := range map[string]struct {
		udp   uint16
		frame []byte
	}{
		"inside the IP header": {33, whole}, "of a tunnel": {60, whole}, "cut": {20, whole[:20]}, "ICMP": {34, icmp}, "ARP": {34, arp}, "with options": {34, options},
	} {
		u := unfinished(row.udp)
		if packets, err := u.Packets(row.frame); err != nil || len(packets) != 1 || !bytes.Equal(packets[0], row.frame) {
			t.Errorf("%s: %d packets, %v", name, len(packets), err)
		}
	}
}

// TestPacketsOfAWrongHeader: a header that does not match its frame is an error.
func TestPacketsOfAWrongHeader(t *testing.T) {
	whole := frame(t, trainIPv4)
	short := unfinished(34)
	if packets, err := short.Packets(whole[:41]); !errors.Is(err, unix.EBADMSG) {
		t.Errorf("41 bytes: %d packets, %v", len(packets), err)
	}
	none := unfinished(34)
	none[4], none[5] = 0, 0
	if _, err := none.Packets(whole); !errors.Is(err, unix.EBADMSG) {
		t.Errorf("segments of nothing: %v", err)
	}
}

func FuzzPackets(f *testing.F) {
	for text, udp := range map[string]uint16{trainIPv4: 34, trainIPv6: 58} {
		u := unfinished(udp)
		f.Add(u[:], frame(f, text))
	}
	f.Fuzz(func(t *testing.T, header, frame []byte) {
		if len(header) < VnetHeaderLen {
			return
		}
		u := Unfinished(header)
		packets, err := u.Packets(frame)
		if (err == nil) == (len(packets) == 0) {
			t.Errorf("%d packets, %v", len(packets), err)
		}
	})
}
