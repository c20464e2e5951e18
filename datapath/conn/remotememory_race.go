// SPDX-License-Identifier: Apache-2.0

//go:build race

package conn

// Accesses on behalf of a peer are hidden from the race detector, which cannot observe the ordering by the network.
// copy would be instrumented even in a norace function, so the loops copy byte by byte.

//go:norace
func writeRemote(memory, payload []byte) {
	for i := range payload {
		memory[i] = payload[i]
	}
}

//go:norace
func readRemote(to, memory []byte) int {
	n := min(len(to), len(memory))
	for i := range n {
		to[i] = memory[i]
	}
	return n
}

//go:norace
func writeTail(memory, payload []byte) { writeRemote(memory, payload) }
