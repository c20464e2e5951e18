// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// unsealed replaces the ICRC of packets on in-memory networks: these packets cannot be damaged, and computing the ICRC
// of a full packet takes as long as a copy of it. A packet may have this value as its ICRC by chance, and is then not
// checked. One damaged packet in 2³² is therefore not detected, as with any ICRC.
const unsealed = 0x45434F52 // "ROCE" in the frame's byte order

// Unsealed reports whether the packet has no ICRC. It is valid only on in-memory networks.
func (p *Packet) Unsealed() bool { return p.ICRC() == unsealed }

// Complete writes the ICRC of a frame that has none, for callers that corrupt or capture the frame. Other frames are
// not changed.
func Complete(frame []byte) {
	var p Packet
	if Parse(frame, &p) == FaultNone && p.Unsealed() {
		binary.LittleEndian.PutUint32(p.frame[len(p.frame)-ICRCLen:], p.computeICRC())
	}
}
