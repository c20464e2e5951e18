// SPDX-License-Identifier: Apache-2.0

//go:build !race

package conn

import "encoding/binary"

// Access to memory on behalf of a peer. As with hardware, only completions order the RDMA accesses of a peer and the
// accesses of the program. Preventing races is the program's responsibility (see remotememory_race.go).

func writeRemote(memory, payload []byte) { copy(memory, payload) }

func readRemote(to, memory []byte) int { return copy(to, memory) }

// writeTail writes the last tailSize bytes of memory with a single store.
func writeTail(memory, payload []byte) {
	switch len(payload) {
	case 8:
		binary.NativeEndian.PutUint64(memory, binary.NativeEndian.Uint64(payload))
	case 4:
		binary.NativeEndian.PutUint32(memory, binary.NativeEndian.Uint32(payload))
	case 2:
		binary.NativeEndian.PutUint16(memory, binary.NativeEndian.Uint16(payload))
	default:
		memory[0] = payload[0]
	}
}
