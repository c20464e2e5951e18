//go:build !race

package conn

import "encoding/binary"

// How memory is accessed for a peer. What a peer does by RDMA has no order with what the program does but
// for completions, as with hardware; racing accesses are the program's matter (see remotememory_race.go).

func writeRemote(memory, payload []byte) { copy(memory, payload) }

func readRemote(to, memory []byte) int { return copy(to, memory) }

// writeTail writes what tailSize says by one store.
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
