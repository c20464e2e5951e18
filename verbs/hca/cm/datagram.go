// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/roced/roced/datapath/wire"

// Path is the path of a datagram between the two QP 1, from this card's view, in both directions.
type Path struct {
	Local, Remote wire.GID
	TrafficClass  uint8
	HopLimit      uint8  // 0 stands for the card's default
	FlowLabel     uint32 // 20 bits
}

// answer returns the path of an answer. Its traffic class is 0, as in the kernel.
func (p Path) answer() Path { return Path{Local: p.Local, Remote: p.Remote} }

// Datagram is a message with its path.
type Datagram struct {
	Path Path
	MAD  [wire.MADLen]byte
}

func (d *Datagram) mad() wire.MAD { return d.MAD[:] }
