package ud

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// Options say what an endpoint is to be. The zero value is right for most programs.
type Options struct {
	// QKey guards the endpoint: what is sent to it must carry the same one. 0 stands for
	// verbs.UDPQKey, which the members of rdma_cm's groups have.
	QKey verbs.QKey
	// ZeroQKey has a QKey of 0 be that, and not stand for another.
	ZeroQKey bool

	// RecvDepth is how many messages can wait or be lent, SendDepth how many can be on their
	// way out. 0 stands for 512 and 256; at most what the device grants a queue.
	RecvDepth, SendDepth int

	// MaxMessage is the longest message in bytes, either way. 0 stands for the longest that
	// the device can take. A longer one that comes is dropped and counted by the card.
	MaxMessage int

	// Source is the own address to send from. The zero Addr leaves the choice to the
	// destination: its IP version, link-local or not, and the longest common prefix.
	Source netip.Addr

	// FlowLabel (20 bits) and TrafficClass go into what is sent. The flow label picks the UDP
	// source port, and so the way through the network. Answers have those of the question.
	FlowLabel    uint32
	TrafficClass uint8

	// NoLoopback keeps what the endpoint sends to a group that it has joined from coming
	// back to it.
	NoLoopback bool

	// Spin has calls that wait poll in place of sleeping: the shortest round trip, at the
	// price of a processor while they wait.
	Spin bool

	// MaxHandles is how many destinations are kept resolved; 0 stands for 1024. Beyond, the
	// one that was sent to the longest ago goes, and is resolved again when needed.
	MaxHandles int
}

// complete fills in what the zero values stand for, and refuses what cannot be.
func (o *Options) complete(port *verbs.PortAttr) error {
	if !o.ZeroQKey {
		o.QKey = cmp.Or(o.QKey, verbs.UDPQKey)
	}
	o.RecvDepth, o.SendDepth = cmp.Or(o.RecvDepth, 512), cmp.Or(o.SendDepth, 256)
	o.MaxHandles = cmp.Or(o.MaxHandles, 1024)
	longest := port.MaxMTU.Bytes()
	o.MaxMessage = cmp.Or(o.MaxMessage, longest)
	switch {
	case o.RecvDepth < 0 || o.SendDepth < 0 || o.MaxHandles < 0 || o.MaxMessage < 0:
		return fmt.Errorf("%w: a number of Options is negative", verbs.ErrInvalid)
	case o.MaxMessage > longest:
		return fmt.Errorf("%w: MaxMessage %d, and the device takes %d bytes", ErrTooLong, o.MaxMessage, longest)
	}
	return nil
}
