package ud

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// Options are the options of an endpoint. The zero value suits most programs.
type Options struct {
	// QKey is the endpoint's Q_Key; the card drops messages that carry another. 0 stands for
	// verbs.UDPQKey, which rdma_cm uses for groups.
	QKey verbs.QKey
	// ZeroQKey means that a QKey of 0 is the Q_Key 0.
	ZeroQKey bool

	// RecvDepth is the number of receive buffers, SendDepth that of send buffers. 0 stands for 512
	// and 256. DeviceAttr.MaxQPWR is the most.
	RecvDepth, SendDepth int

	// MaxMessage is the length of the longest message in bytes, in both directions. 0 stands for the
	// longest that the device can send now, but 1024 at least. The card drops and counts longer ones
	// that arrive: where the interface's MTU may be raised later, give PortAttr.MaxMTU in bytes.
	MaxMessage int

	// Source is the address to send from, which the device must have. If it is the zero Addr, or
	// unspecified (0.0.0.0 or ::), the endpoint chooses one that suits the destination: by IP version,
	// link-local or not, and longest common prefix.
	Source netip.Addr

	// FlowLabel (20 bits) and TrafficClass are those of sent messages. The flow label determines the
	// UDP source port, and so the path through the network. A reply has those of its message.
	FlowLabel    uint32
	TrafficClass uint8

	// NoLoopback keeps the endpoint from receiving its own messages to groups that it has joined.
	NoLoopback bool

	// Spin makes calls that wait poll instead of sleep. That gives the shortest round trip, and
	// occupies a processor while they wait.
	Spin bool

	// Rate limits messages per second, ByteRate bytes of payload per second; 0 is no limit. Calls
	// that send wait until a message is due; TrySend refuses it. After a pause the messages of 2 ms may be sent at
	// once. Datagrams have no flow control: messages that a receiver cannot take are lost there, and counted
	// as "engine drop_no_receive". See Loss in the package's documentation.
	Rate, ByteRate int

	// MaxHandles is how many destinations are kept resolved; 0 stands for 1024. If there are more,
	// the least recently used one is dropped, and resolved again when needed.
	MaxHandles int
}

const maxFlowLabel = 1<<20 - 1

// complete fills in defaults, and refuses invalid values.
func (o *Options) complete(port *verbs.PortAttr) error {
	if !o.ZeroQKey {
		o.QKey = cmp.Or(o.QKey, verbs.UDPQKey)
	}
	o.RecvDepth, o.SendDepth = cmp.Or(o.RecvDepth, 512), cmp.Or(o.SendDepth, 256)
	o.MaxHandles = cmp.Or(o.MaxHandles, 1024)
	if o.Source.IsUnspecified() {
		o.Source = netip.Addr{}
	}
	longest := port.MaxMTU.Bytes()
	o.MaxMessage = cmp.Or(o.MaxMessage, min(max(port.ActiveMTU, verbs.MTU1024).Bytes(), longest))
	switch {
	case o.RecvDepth < 0 || o.SendDepth < 0 || o.MaxHandles < 0 || o.MaxMessage < 0 || o.Rate < 0 || o.ByteRate < 0:
		return fmt.Errorf("%w: a number in Options is negative", verbs.ErrInvalid)
	case o.FlowLabel > maxFlowLabel:
		return fmt.Errorf("%w: FlowLabel 0x%x has more than 20 bits", verbs.ErrInvalid, o.FlowLabel)
	case o.MaxMessage > longest:
		return fmt.Errorf("%w: MaxMessage is %d, but the device sends at most %d bytes", ErrTooLong, o.MaxMessage, longest)
	}
	return nil
}
