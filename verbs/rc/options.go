package rc

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
)

// Options are the options of a connection, or of those that a listener accepts. The zero value suits most
// programs.
type Options struct {
	// Type is verbs.QPTypeRC, for which 0 stands, or verbs.QPTypeUC: unreliable, without Read and atomics.
	// Connection ids make reliable connections only, so UC is for New.
	Type verbs.QPType

	// Domain is what the connection shares with others: regions, and receives if the domain has some. nil stands
	// for one of its own; all connections of a listener share that.
	Domain *Domain

	// RecvDepth is the number of receive buffers, SendDepth how many requests may be outstanding. 0 stands for
	// 128. DeviceAttr.MaxQPWR is the most. With receives of the Domain, RecvDepth is that one's.
	RecvDepth, SendDepth int

	// MaxMessage is the length of the longest message that is received, and of the longest that is copied: by
	// Send, Write and Read. In bytes; 0 stands for 4096. A longer message of the peer's ends the connection.
	// Requests that name a Region (Post) may be longer. Receives of the Domain have the length that it says.
	MaxMessage int

	// RecvInto has messages received in a region of the program's, RecvDepth buffers one after another. In one
	// that is shorter they overlap: for programs that count messages and do not look at them.
	RecvInto *Region

	// Reads is how many reads and atomics are outstanding at once, and how many of the peer's are answered at
	// once. 0 stands for as many as the device can.
	Reads int

	// PrivateData is sent to the peer by Dial (at most 56 bytes) and by Listen (196), see Conn.RemotePrivateData.
	PrivateData []byte

	// Admit is asked by a listener before it accepts a client, with the client's address and private data,
	// behind which there are zeros. What it gives is told to the client instead of PrivateData. An error rejects
	// the client, which gets the error's text (its first 148 bytes). Calls come one at a time, and no other
	// client is accepted meanwhile.
	Admit func(client netip.AddrPort, said []byte) (answer []byte, err error)

	// Backlog is how many connections a listener makes before Accept asks for them; 0 stands for 16. As many
	// more requests as the device can wait until Accept has taken some.
	Backlog int

	// Source is the address to send from, which the device must have. The zero Addr stands for the one that the
	// host's route chooses (Dial), or for the device's default address (New).
	Source netip.Addr

	// MTU is the path's, for New; the peer must have the same. 0 stands for the port's active MTU.
	MTU verbs.MTU

	// TrafficClass is that of all packets, of Dial and New; an accepted connection has the client's.
	TrafficClass uint8

	// Timeout is how long an answer may take, for New, before all packets are sent again, which is done 7 times; then
	// the peer is taken for dead. It is rounded up to 4.096 µs × 2ⁿ. 0 stands for 67 ms. Dial and Listen refuse it: they
	// have what connection ids agree on, 2.15 s, so that a peer is taken for dead after 17 s. A packet that was lost
	// is mostly sent again sooner; see the package's documentation.
	Timeout time.Duration

	// Linger is how long Close waits for the peer to acknowledge what was sent; 0 stands for 5 s.
	Linger time.Duration

	// Spin makes calls that wait poll instead of sleep. That gives the shortest round trip, and occupies a
	// processor while they wait.
	Spin bool
}

// What 0 stands for.
const (
	defaultDepth   = 128
	defaultMessage = 4096
	defaultBacklog = 16
	defaultTimeout = 67 * time.Millisecond
	defaultLinger  = 5 * time.Second
)

// complete fills in defaults, and refuses invalid values.
func (o *Options) complete(c *verbs.Context) error {
	device, err := c.QueryDevice()
	if err != nil {
		return err
	}
	o.Type = cmp.Or(o.Type, verbs.QPTypeRC)
	o.RecvDepth, o.SendDepth = cmp.Or(o.RecvDepth, defaultDepth), cmp.Or(o.SendDepth, defaultDepth)
	o.MaxMessage, o.Backlog = cmp.Or(o.MaxMessage, defaultMessage), cmp.Or(o.Backlog, defaultBacklog)
	o.Reads = cmp.Or(o.Reads, min(device.MaxQPRDAtom, math.MaxUint8))
	o.Timeout, o.Linger = cmp.Or(o.Timeout, defaultTimeout), cmp.Or(o.Linger, defaultLinger)
	switch {
	case o.Type != verbs.QPTypeRC && o.Type != verbs.QPTypeUC:
		return fmt.Errorf("%w: Options.Type is %v; connections are RC or UC", verbs.ErrInvalid, o.Type)
	case o.RecvDepth < 0 || o.SendDepth < 0 || o.MaxMessage < 0 || o.Backlog < 0 || o.Timeout < 0 || o.Linger < 0:
		return fmt.Errorf("%w: a number in Options is negative", verbs.ErrInvalid)
	case o.RecvDepth > device.MaxQPWR || o.SendDepth > device.MaxQPWR:
		return fmt.Errorf("%w: Options.RecvDepth is %d and SendDepth %d, and the device has at most %d",
			verbs.ErrInvalid, o.RecvDepth, o.SendDepth, device.MaxQPWR)
	case o.Reads < 0 || o.Reads > device.MaxQPRDAtom:
		return fmt.Errorf("%w: Options.Reads is %d, and the device has at most %d",
			verbs.ErrInvalid, o.Reads, device.MaxQPRDAtom)
	case o.Domain != nil && o.Domain.verbs != c:
		return fmt.Errorf("%w: Options.Domain is another context's", verbs.ErrInvalid)
	case o.RecvInto != nil && (o.Domain == nil || o.RecvInto.domain != o.Domain || o.RecvInto.Len() < o.MaxMessage):
		return fmt.Errorf("%w: Options.RecvInto must be a region of Options.Domain, of MaxMessage bytes at least",
			verbs.ErrInvalid)
	}
	return o.shareRecvs()
}

// checkIDs refuses what connections that ids make cannot have. most is how much private data there may be, in bytes.
func (o *Options) checkIDs(most int) error {
	switch {
	case o.Type != 0 && o.Type != verbs.QPTypeRC:
		return fmt.Errorf("%w: Options.Type is %v; connection ids make RC, and New makes the others", verbs.ErrInvalid, o.Type)
	case o.Timeout != 0:
		return fmt.Errorf("%w: Options.Timeout is for New: connection ids agree on their own", verbs.ErrInvalid)
	case len(o.PrivateData) > most:
		return fmt.Errorf("%w: Options.PrivateData has %d bytes, at most %d fit", verbs.ErrInvalid, len(o.PrivateData), most)
	}
	return nil
}

// What private data a request and its answer have room for, in bytes.
const (
	maxRequestData = 56
	maxAnswerData  = 196
)

// sourcePort is Options.Source for connection ids; zero if the host's route is to choose it.
func (o *Options) sourcePort() netip.AddrPort {
	if !o.Source.IsValid() || o.Source.IsUnspecified() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(o.Source, 0)
}

// shareRecvs adopts the domain's receives, if it has some.
func (o *Options) shareRecvs() error {
	if o.Domain == nil || o.Domain.recvs == nil {
		return nil
	}
	if o.RecvInto != nil {
		return fmt.Errorf("%w: Options.RecvInto, and a Domain that has receives of its own", verbs.ErrInvalid)
	}
	o.RecvDepth = o.Domain.options.RecvDepth
	return nil
}
