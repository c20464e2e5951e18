package wire

import "encoding/binary"

// unsealed stands for the ICRC of a packet that has none, since its frame never leaves memory: there is nothing on its
// way that could damage it, and the ICRC of a full packet costs as much as to copy it. A packet may have this ICRC by
// chance. It is then not checked, so that one damaged packet in 2^32 is not found, as with any ICRC.
const unsealed = 0x45434F52 // ROCE, as it lies in the frame

// Unsealed says whether the packet has no ICRC. Ask only of frames that never leave memory.
func (p *Packet) Unsealed() bool { return p.ICRC() == unsealed }

// Complete writes the ICRC of a frame that has none, for who may damage, or show, the frame. Other frames stay as
// they are.
func Complete(frame []byte) {
	var p Packet
	if Parse(frame, &p) == FaultNone && p.Unsealed() {
		binary.LittleEndian.PutUint32(p.frame[len(p.frame)-ICRCLen:], p.computeICRC())
	}
}
