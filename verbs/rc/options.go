// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
)

// Options are the options of a connection, or of the connections of a listener. The zero value suits most programs.
type Options struct {
	// Type is verbs.QPTypeRC (default) or verbs.QPTypeUC: unreliable, without Read and atomics. Connection ids support
	// only reliable connections, so UC requires New.
	Type verbs.QPType

	// Domain is the domain that this connection shares with others: its regions and, if it has some, its receives. nil
	// means a private domain, which all connections of a listener share.
	Domain *Domain

	// RecvDepth is the number of receive buffers, SendDepth the maximum number of outstanding requests. The default is
	// 128, the maximum DeviceAttr.MaxQPWR. If the Domain has receives, its RecvDepth is used.
	RecvDepth, SendDepth int

	// MaxMessage is the maximum length in bytes of received messages, and of data copied by Send, Write and Read
	// (default 4096). A longer message of the peer ends the connection. Requests that use a Region (Post) may be
	// longer. If the Domain has receives, its MaxMessage applies to received messages.
	MaxMessage int

	// RecvInto is a region of Domain for received messages, with RecvDepth consecutive buffers of MaxMessage bytes. If
	// the region is shorter, the buffers overlap, which is useful for programs that ignore the contents of messages.
	RecvInto *Region

	// Reads is the maximum number of outstanding reads and atomics, in both directions. The default is the maximum of
	// the device.
	Reads int

	// PrivateData is sent to the peer by Dial (at most 56 bytes) and by Listen (at most 196); see
	// Conn.RemotePrivateData.
	PrivateData []byte

	// Admit is called by a listener before it accepts a client, with the client's address and its private data, which
	// is padded with zeros. The returned data is sent to the client instead of PrivateData. If Admit returns an error,
	// the client is rejected and receives the first 148 bytes of the error's text. Calls do not overlap, and the
	// listener accepts no other client during a call.
	Admit func(client netip.AddrPort, said []byte) (answer []byte, err error)

	// Backlog is the maximum number of connections that a listener establishes before Accept returns them (default 16).
	// Further requests wait in the device's queue.
	Backlog int

	// Source is the source address, which must be an address of the device. The zero Addr means the one that the host's
	// route selects (Dial), or the device's default address (New).
	Source netip.Addr

	// MTU is the path MTU, for New; both ends must use the same MTU. 0 means the port's active MTU.
	MTU verbs.MTU

	// TrafficClass is the traffic class of all packets, for Dial and New; an accepted connection uses the client's.
	TrafficClass uint8

	// Timeout is the local ACK timeout, for New: the time without a response after which packets are retransmitted
	// (default 67 ms). It is rounded up to 4.096 µs × 2ⁿ. After 7 retries the peer is considered dead. Dial and Listen
	// refuse this option: connection ids negotiate 2.15 s, so that a peer is considered dead after 17 s. Most lost
	// packets are retransmitted sooner; see the package documentation.
	Timeout time.Duration

	// Linger is the maximum time for which Close waits for the peer to acknowledge sent data (default 5 s).
	Linger time.Duration

	// Spin makes waiting calls poll instead of sleep. This gives the shortest round trip, and occupies a processor
	// while they wait.
	Spin bool
}

// Defaults.
const (
	defaultDepth   = 128
	defaultMessage = 4096
	defaultBacklog = 16
	defaultTimeout = 67 * time.Millisecond
	defaultLinger  = 5 * time.Second
)

// complete sets defaults, and checks the values.
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
		return fmt.Errorf("%w: Options.Type is %v; it must be RC or UC", verbs.ErrInvalid, o.Type)
	case o.RecvDepth < 0 || o.SendDepth < 0 || o.MaxMessage < 0 || o.Backlog < 0 || o.Timeout < 0 || o.Linger < 0:
		return fmt.Errorf("%w: a number in Options is negative", verbs.ErrInvalid)
	case o.RecvDepth > device.MaxQPWR || o.SendDepth > device.MaxQPWR:
		return fmt.Errorf("%w: Options.RecvDepth is %d and SendDepth %d; the device's maximum is %d",
			verbs.ErrInvalid, o.RecvDepth, o.SendDepth, device.MaxQPWR)
	case o.Reads < 0 || o.Reads > device.MaxQPRDAtom:
		return fmt.Errorf("%w: Options.Reads is %d; the device's maximum is %d",
			verbs.ErrInvalid, o.Reads, device.MaxQPRDAtom)
	case o.Domain != nil && o.Domain.verbs != c:
		return fmt.Errorf("%w: Options.Domain belongs to another context", verbs.ErrInvalid)
	case o.RecvInto != nil && (o.Domain == nil || o.RecvInto.domain != o.Domain || o.RecvInto.Len() < o.MaxMessage):
		return fmt.Errorf("%w: Options.RecvInto must be a region of Options.Domain, of at least MaxMessage bytes",
			verbs.ErrInvalid)
	}
	return o.shareRecvs()
}

// checkIDs checks the restrictions of connections by ids. most is the maximum length of private data in bytes.
func (o *Options) checkIDs(most int) error {
	switch {
	case o.Type != 0 && o.Type != verbs.QPTypeRC:
		return fmt.Errorf("%w: Options.Type is %v; connection ids support only RC; use New", verbs.ErrInvalid, o.Type)
	case o.Timeout != 0:
		return fmt.Errorf("%w: Options.Timeout requires New: connection ids negotiate their own", verbs.ErrInvalid)
	case len(o.PrivateData) > most:
		return fmt.Errorf("%w: Options.PrivateData has %d bytes; the maximum is %d", verbs.ErrInvalid, len(o.PrivateData), most)
	}
	return nil
}

// The maximum length of private data of a REQ and a REP, in bytes.
const (
	maxRequestData = 56
	maxAnswerData  = 196
)

// sourcePort returns Options.Source for connection ids; zero if the host's route selects it.
func (o *Options) sourcePort() netip.AddrPort {
	if !o.Source.IsValid() || o.Source.IsUnspecified() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(o.Source, 0)
}

// shareRecvs sets the options for shared receives, if the domain has some.
func (o *Options) shareRecvs() error {
	if o.Domain == nil || o.Domain.recvs == nil {
		return nil
	}
	if o.RecvInto != nil {
		return fmt.Errorf("%w: Options.RecvInto cannot be used with a Domain that has receives", verbs.ErrInvalid)
	}
	o.RecvDepth = o.Domain.options.RecvDepth
	return nil
}
