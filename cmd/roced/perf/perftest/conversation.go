// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// Version is the supported version of perftest's TCP protocol, that of Debian 12's package perftest 4.5+0.17. The
// protocol is undocumented and changes between versions.
const Version = "6.06"

// The two sides exchange messages of the same kind in turn, the client first:
//
//	version, 16 bytes          6.06 and NULs; roced adds a mark, and its terms follow (package meet)
//	page size, cache line      4 bytes each, big endian; they determine buffers of the peer
//	MTU, 2 bytes               1 to 5 as a digit, NUL: the smaller one is used
//	keys, 108 bytes            the address of each queue pair
//	keys                       connected; for each queue pair
//	keys, twice                of the first queue pair: printed; receives posted, start
//	messages
//	keys                       of the first queue pair: all sent, or all received
//	"done", NUL                neither side waits for it
//
// In a bandwidth test where the server's program takes no part (Reports), the messages precede the last of the
// keys that mean "start", and the client then sends its result (result.go). ib_write_lat exchanges nothing after
// the messages.
//
// The kind of test, the size and the count are not exchanged: both sides have them from their command lines.
const (
	page        = 4096
	cacheLine   = 64
	mtuLen      = 2
	doneMessage = "done\x00"
)

// Conversation is one side of the exchange.
type Conversation struct {
	Conn    io.ReadWriter
	Client  bool
	Pairs   int  // number of queue pairs; 0 means 1
	Reports bool // ib_write_bw, ib_read_bw and ib_atomic_bw
	Terms   meet.Terms

	Own, Peer []Keys // of each queue pair
}

// swap sends this side's message and reads the peer's of the same length.
func (x *Conversation) swap(own []byte) (peer []byte, err error) {
	steps := []func() error{func() error { return x.write(own) }, func() (err error) { peer, err = x.read(len(own)); return err }}
	if !x.Client {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return peer, nil
}

func (x *Conversation) write(message []byte) error {
	if _, err := x.Conn.Write(message); err != nil {
		return fmt.Errorf("send to perftest: %w", err)
	}
	return nil
}

func (x *Conversation) read(length int) ([]byte, error) {
	message := make([]byte, length)
	if _, err := io.ReadFull(x.Conn, message); err != nil {
		return nil, fmt.Errorf("read from perftest: %w", err)
	}
	return message, nil
}

// Greet exchanges versions and sizes and returns the peer's MTU.
func (x *Conversation) Greet(mtu wire.MTU) (wire.MTU, error) {
	if err := x.greetVersion(); err != nil {
		return 0, err
	}
	for _, n := range []uint32{page, cacheLine} {
		if _, err := x.swap(binary.BigEndian.AppendUint32(nil, n)); err != nil {
			return 0, err
		}
	}
	digit, err := x.swap([]byte{'0' + byte(mtu), 0})
	if err != nil {
		return 0, err
	}
	peer := wire.MTU(digit[0] - '0')
	if peer < wire.MTU256 || peer > wire.MTU4096 || digit[1] != 0 {
		return 0, fmt.Errorf("%q is not an MTU of perftest %s: %w", digit, Version, unix.EBADMSG)
	}
	return peer, nil
}

// greetVersion returns EPROTONOSUPPORT unless the peer has this version. If the peer is roced, its terms must
// match.
func (x *Conversation) greetVersion() error {
	own := x.Terms.Version(Version)
	var peer []byte
	kind, err := meet.Perftest, error(nil)
	if x.Client {
		if err = x.write(own); err == nil {
			x.Conn, err = x.Terms.Offer(x.Conn)
		}
		if err == nil {
			peer, err = x.read(len(own))
		}
	} else if peer, kind, err = x.Terms.ReadFirst(x.Conn); err == nil && kind == meet.Perftest {
		err = x.write(own)
	}
	version, _, _ := bytes.Cut(peer, []byte{0})
	switch {
	case err != nil:
		return err
	case kind == meet.Pingpong:
		return fmt.Errorf("the client is ibv_*_pingpong of rdma-core; start roced ping for it: %w", unix.EPROTONOSUPPORT)
	case string(version) != Version:
		return fmt.Errorf("the peer's first bytes are %q; roced supports perftest %s, the version that -V prints (Debian 12's package perftest 4.5+0.17): %w",
			version, Version, unix.EPROTONOSUPPORT)
	}
	return nil
}

// Meet exchanges the keys of one queue pair after the other. It calls self for this side's keys: on the server with the
// client's keys, on the client with nil.
func (x *Conversation) Meet(self func(peer *Keys) (Keys, error)) error {
	for range max(1, x.Pairs) {
		if err := x.meet(self); err != nil {
			return err
		}
	}
	return nil
}

func (x *Conversation) meet(self func(peer *Keys) (Keys, error)) error {
	if x.Client {
		if err := x.introduce(self, nil); err != nil {
			return err
		}
		return x.readPeer()
	}
	if err := x.readPeer(); err != nil {
		return err
	}
	return x.introduce(self, &x.Peer[len(x.Peer)-1])
}

func (x *Conversation) introduce(self func(peer *Keys) (Keys, error), peer *Keys) error {
	own, err := self(peer)
	if err != nil {
		return err
	}
	x.Own = append(x.Own, own)
	return x.write(own.message())
}

func (x *Conversation) readPeer() error {
	message, err := x.read(keysLen)
	if err != nil {
		return err
	}
	keys, err := parseKeys(message)
	if err != nil {
		return err
	}
	x.Peer = append(x.Peer, keys)
	return keys.check()
}

// Prepare runs the rounds until both sides are ready.
func (x *Conversation) Prepare() error {
	for i := range x.Own {
		if err := x.round(i); err != nil {
			return err
		}
	}
	if err := x.round(0); err != nil || x.Reports {
		return err
	}
	return x.round(0)
}

// round exchanges the keys of queue pair i again. The server uses the queue pair that the client chooses.
func (x *Conversation) round(i int) error {
	if x.Client {
		if err := x.write(x.Own[i].message()); err != nil {
			return err
		}
		_, err := x.recognise()
		return err
	}
	i, err := x.recognise()
	if err != nil {
		return err
	}
	return x.write(x.Own[i].message())
}

// recognise reads keys, checks that they are unchanged, and returns the index of their queue pair.
func (x *Conversation) recognise() (int, error) {
	message, err := x.read(keysLen)
	if err != nil {
		return 0, err
	}
	keys, err := parseKeys(message)
	if err != nil {
		return 0, err
	}
	i := slices.Index(x.Peer, keys)
	if i < 0 {
		err = fmt.Errorf("the peer's address changed from %v to %v; use the same number of queue pairs (-q) on both sides: %w", x.Peer[0].Destination, keys.Destination, unix.EBADMSG)
	}
	return i, err
}

// AwaitEnd waits, on the server, for the client's last keys.
func (x *Conversation) AwaitEnd() error {
	_, err := x.recognise()
	return err
}

// End completes the conversation. A server must have called AwaitEnd before.
func (x *Conversation) End() error {
	err := x.write(x.Own[0].message())
	if err == nil && x.Client {
		err = x.AwaitEnd()
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(x.Conn, doneMessage); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("send the final message to perftest: %w", err)
	}
	return nil
}
