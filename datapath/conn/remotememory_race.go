//go:build race

package conn

// The race detector does not look at what is done for a peer: it knows no order that comes by a network.
// copy would tell it, whatever the function says.

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
