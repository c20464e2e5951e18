//go:build cards

package xsk

// poison overwrites memory before the kernel gets it back, and what was sent: in zero-copy mode no packet may be read
// there afterwards, by the engine or by the NIC, and who does finds this and no valid ICRC.
func (s *Socket) poison(start, length uint64) {
	memory := s.umem[start : start+length]
	for i := range memory {
		memory[i] = 0xa5
	}
}
