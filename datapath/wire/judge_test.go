// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// exhibit is a frame of this package and the values that it was built from.
type exhibit struct {
	path    Path
	d       Datagram
	payload []byte
	frame   []byte
}

// exhibits returns frames of every shape and pad, some of them with distinct fields.
func exhibits(t *testing.T, v6 bool) (all []exhibit) {
	t.Helper()
	for _, shape := range shapes {
		if shape.path.Dest.IsIPv4() == v6 {
			continue
		}
		for i, size := range []int{0, 1, 2, 3, 4, 5, 64, 256, 1023, 1024, 4096} {
			for _, hasImm := range []bool{false, true} {
				path, d := shape.path, datagram(hasImm)
				path.TrafficClass, path.HopLimit = uint8(23*i), uint8(i)
				d.PSN, d.ID, d.Solicited = PSN(i)*0x10001, uint16(i)*0x1111, i%2 == 1
				all = append(all, exhibit{path, d, filler(size), build(t, path, d, filler(size))})
			}
		}
	}
	return all
}

func frames(all []exhibit) (frames [][]byte) {
	for _, e := range all {
		frames = append(frames, e.frame)
	}
	return frames
}

// judge runs a program and returns the lines that it prints.
func judge(t *testing.T, name string, args ...string) []string {
	t.Helper()
	var stderr strings.Builder
	command := needs.Command(t, name, args...)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, &stderr)
	}
	return strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func opcodeOf(d *Datagram) Opcode {
	if d.HasImm {
		return OpcodeUDSendImmediate
	}
	return OpcodeUDSend
}

func hopsOf(path Path) uint8 {
	if path.HopLimit == 0 {
		return 64
	}
	return path.HopLimit
}
