// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// Classic pcap, little-endian, microseconds (draft-ietf-opsawg-pcap).
const (
	pcapMagic     = 0xA1B2C3D4
	pcapHeader    = 24
	pcapRecord    = 16
	pcapSnapLen   = 1 << 18
	pcapEthernet  = 1
	pcapCaptured  = 8  // 4 bytes, in a record: captured bytes that follow
	pcapOriginal  = 12 // 4 bytes, in a record: original number of bytes
	pcapLinkLayer = 20 // 4 bytes, in the header
)

// readPcap returns the frames of a capture file.
func readPcap(t testing.TB, path string) (frames [][]byte) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file) < pcapHeader || binary.LittleEndian.Uint32(file) != pcapMagic ||
		binary.LittleEndian.Uint32(file[pcapLinkLayer:]) != pcapEthernet {
		t.Fatalf("%s: not a little-endian pcap of Ethernet frames in microseconds", path)
	}
	for rest := file[pcapHeader:]; len(rest) > 0; {
		if len(rest) < pcapRecord {
			t.Fatalf("%s: cut off in a record's header", path)
		}
		length := binary.LittleEndian.Uint32(rest[pcapCaptured:])
		original := binary.LittleEndian.Uint32(rest[pcapOriginal:])
		rest = rest[pcapRecord:]
		if length != original || int(length) > len(rest) {
			t.Fatalf("%s: frame %d is cut off", path, len(frames)+1)
		}
		frames = append(frames, rest[:length:length])
		rest = rest[length:]
	}
	return frames
}

// writePcap writes frames to a temporary capture file.
func writePcap(t testing.TB, frames [][]byte) (path string) {
	t.Helper()
	file := binary.LittleEndian.AppendUint32(nil, pcapMagic)
	file = binary.LittleEndian.AppendUint16(file, 2) // version 2.4
	file = binary.LittleEndian.AppendUint16(file, 4)
	file = append(file, make([]byte, 8)...) // time zone, accuracy
	file = binary.LittleEndian.AppendUint32(file, pcapSnapLen)
	file = binary.LittleEndian.AppendUint32(file, pcapEthernet)
	for _, frame := range frames {
		file = append(file, make([]byte, 8)...) // time
		file = binary.LittleEndian.AppendUint32(file, uint32(len(frame)))
		file = binary.LittleEndian.AppendUint32(file, uint32(len(frame)))
		file = append(file, frame...)
	}
	path = filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPcapWrittenIsRead(t *testing.T) {
	want := [][]byte{{1}, {}, bytes.Repeat([]byte{2}, 2000)}
	got := readPcap(t, writePcap(t, want))
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("frame %d: % x, want % x", i, got[i], want[i])
		}
	}
}
