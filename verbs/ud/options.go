// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

// Options are the options of an endpoint. The zero value suits most programs.
type Options struct {
	// QKey is the endpoint's Q_Key; the card drops messages with another Q_Key. 0 means verbs.UDPQKey, which rdma_cm
	// uses for groups.
	QKey verbs.QKey
	// ZeroQKey means that a QKey of 0 is the Q_Key 0.
	ZeroQKey bool

	// RecvDepth is the number of receive buffers (default 512), SendDepth that of send buffers (default 256). The
	// maximum is DeviceAttr.MaxQPWR.
	RecvDepth, SendDepth int

	// MaxMessage is the maximum length of a message in bytes, in both directions. The default is the length that the
	// device can send now, but at least 1024. The card drops and counts longer messages that arrive. If the interface's
	// MTU may increase later, set PortAttr.MaxMTU in bytes.
	MaxMessage int

	// Source is the source address, which must be an address of the device. If it is the zero Addr, or unspecified
	// (0.0.0.0 or ::), the endpoint chooses one that matches the destination: by IP version, scope (link-local or not),
	// and longest common prefix.
	Source netip.Addr

	// FlowLabel (20 bits) and TrafficClass are those of sent messages. The flow label determines the UDP source port,
	// and so the path through the network. A reply uses those of its message.
	FlowLabel    uint32
	TrafficClass uint8

	// NoLoopback prevents the endpoint from receiving its own messages to groups that it has joined.
	NoLoopback bool

	// Spin makes waiting calls poll instead of sleep. This gives the shortest round trip, and occupies a processor
	// while they wait.
	Spin bool

	// Rate limits messages per second, ByteRate payload bytes per second; 0 means no limit. Calls that send wait until
	// a message is due; TrySend refuses it. After a pause, up to 2 ms worth of messages may be sent at once. See Loss
	// in the package documentation.
	Rate, ByteRate int

	// MaxHandles is the maximum number of resolved destinations (default 1024). If it is exceeded, the least recently
	// used one is dropped, and resolved again when needed.
	MaxHandles int
}

const maxFlowLabel = 1<<20 - 1

// complete sets defaults, and checks the values.
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
		return fmt.Errorf("%w: FlowLabel 0x%x exceeds 20 bits", verbs.ErrInvalid, o.FlowLabel)
	case o.MaxMessage > longest:
		return fmt.Errorf("%w: MaxMessage %d exceeds the device's maximum of %d bytes", ErrTooLong, o.MaxMessage, longest)
	}
	return nil
}
