package cm

import "github.com/roced/roced/datapath/wire"

// Path is the way of a datagram between the two QP 1, seen from this card, whichever way it goes.
type Path struct {
	Local, Remote wire.GID
	TrafficClass  uint8
	HopLimit      uint8  // 0 stands for the card's default
	FlowLabel     uint32 // 20 bits
}

// answer is the path of an answer. Like the kernel's it is of traffic class 0.
func (p Path) answer() Path { return Path{Local: p.Local, Remote: p.Remote} }

// Datagram is a message with its path.
type Datagram struct {
	Path Path
	MAD  [wire.MADLen]byte
}

func (d *Datagram) mad() wire.MAD { return d.MAD[:] }
