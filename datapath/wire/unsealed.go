// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// unsealed replaces the ICRC of a packet whose frame never leaves memory: it cannot be damaged, and the ICRC of a full
// packet costs as much as a copy of it. A packet may have this ICRC by chance. It is then not checked, so that one
// damaged packet in 2^32 is not detected, as with any ICRC.
const unsealed = 0x45434F52 // "ROCE" in the frame's byte order

// Unsealed reports whether the packet has no ICRC. It is valid only for frames that never leave memory.
func (p *Packet) Unsealed() bool { return p.ICRC() == unsealed }

// Complete writes the ICRC of a frame that has none, for callers that may damage or capture the frame. Other frames are
// not changed.
func Complete(frame []byte) {
	var p Packet
	if Parse(frame, &p) == FaultNone && p.Unsealed() {
		binary.LittleEndian.PutUint32(p.frame[len(p.frame)-ICRCLen:], p.computeICRC())
	}
}
