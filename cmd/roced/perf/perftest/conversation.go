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

// Version is what is spoken: that of Debian 12's package perftest 4.5+0.17. What
// its programs tell each other over TCP has no description, and changes.
const Version = "6.06"

// The two sides send each other messages of the same kind in turn, the client first:
//
//	version, 16 bytes          6.06 and NULs; of a roced marked, and its terms follow (package meet)
//	page size, cache line      4 bytes each, big endian; they shape buffers of the peer's
//	MTU, 2 bytes               1 to 5 as a digit, NUL: the smaller one counts
//	keys, 108 bytes            where messages go to; of each queue pair
//	keys                       connected; of each queue pair
//	keys, twice                of the first; printed; receives are posted, go
//	messages
//	keys                       of the first: all sent, or all received
//	"done", NUL                nobody waits for it
//
// In a test of bandwidth whose server's program does nothing (Reports), the messages are before the last
// of the keys that say go, and after those the client tells what it has measured (result.go). The two of
// ib_write_lat say nothing after the messages.
//
// The kind of test, the size and the count are not exchanged: both sides have them from their command
// lines.
const (
	page        = 4096
	cacheLine   = 64
	mtuLen      = 2
	doneMessage = "done\x00"
)

// Conversation is the conversation of one side.
type Conversation struct {
	Conn    io.ReadWriter
	Client  bool
	Pairs   int  // of queue pairs; 0 is one
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

// Greet exchanges what does not concern the queue pairs, and gives the peer's MTU.
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
		return 0, fmt.Errorf("%q is not an MTU as perftest %s sends it: %w", digit, Version, unix.EBADMSG)
	}
	return peer, nil
}

// greetVersion insists on the version that is spoken. Another is EPROTONOSUPPORT. Another roced's terms must suit.
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
		return fmt.Errorf("the peer's first words are %q; roced speaks with perftest %s, as its programs call themselves with -V (Debian 12's package perftest 4.5+0.17): %w",
			version, Version, unix.EPROTONOSUPPORT)
	}
	return nil
}

// Meet exchanges keys, of one queue pair after the other. The server makes its own when it knows the
// client's; the client is given nil.
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

// Prepare takes the rounds until both sides are ready.
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

// round exchanges keys again, of a queue pair that the client chooses.
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

// recognise reads keys, insists on the peer's as they were, and says of which queue pair they are.
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
		err = fmt.Errorf("the peer's address was %v and is %v; were both sides given the same number of queue pairs (-q)? %w", x.Peer[0].Destination, keys.Destination, unix.EBADMSG)
	}
	return i, err
}

// AwaitEnd is the server's wait for the client's last keys.
func (x *Conversation) AwaitEnd() error {
	_, err := x.recognise()
	return err
}

// End is the last exchange. A server has awaited the client's half before.
func (x *Conversation) End() error {
	err := x.write(x.Own[0].message())
	if err == nil && x.Client {
		err = x.AwaitEnd()
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(x.Conn, doneMessage); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("say done to perftest: %w", err)
	}
	return nil
}
