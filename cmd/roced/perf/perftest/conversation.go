package perftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// Version is what is spoken: that of Debian 12's package perftest 4.5+0.17. What
// ib_send_bw and ib_send_lat tell each other over TCP has no description, and changes.
const Version = "6.06"

// The two sides send each other messages of the same kind in turn, the client first:
//
//	version, 16 bytes          6.06 and NULs
//	page size, cache line      4 bytes each, big endian; they shape buffers of the peer's
//	MTU, 2 bytes               1 to 5 as a digit, NUL: the smaller one counts
//	keys, 108 bytes            where datagrams go to
//	keys, three times more     connected; printed; receives are posted, go
//	datagrams
//	keys                       all sent, or all received
//	"done", NUL                nobody waits for it
//
// The kind of test, the size and the count are not exchanged: both sides have them from their command
// lines.
const (
	versionLen  = 16
	page        = 4096
	cacheLine   = 64
	mtuLen      = 2
	rounds      = 3
	doneMessage = "done\x00"
)

// Conversation is the conversation of one side.
type Conversation struct {
	Conn      io.ReadWriter
	Client    bool
	Own, Peer Keys
}

// swap sends the own message and reads the peer's of the same length.
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

// greetVersion insists on the version that is spoken. Another is EPROTONOSUPPORT.
func (x *Conversation) greetVersion() error {
	var own [versionLen]byte
	copy(own[:], Version)
	peer, err := x.swap(own[:])
	if err != nil || string(peer) == string(own[:]) {
		return err
	}
	return fmt.Errorf("the peer's first words are %q; spoken is perftest %s, which calls itself so with -V (Debian 12's package perftest 4.5+0.17): %w",
		peer, Version, unix.EPROTONOSUPPORT)
}

// Meet exchanges keys. The server makes its own when it knows the client's; the client
// is given nil.
func (x *Conversation) Meet(self func(peer *Keys) (Keys, error)) (err error) {
	if x.Client {
		if x.Own, err = self(nil); err != nil {
			return err
		}
		if err := x.write(x.Own.message()); err != nil {
			return err
		}
		return x.readPeer()
	}
	if err := x.readPeer(); err != nil {
		return err
	}
	if x.Own, err = self(&x.Peer); err != nil {
		return err
	}
	return x.write(x.Own.message())
}

func (x *Conversation) readPeer() error {
	message, err := x.read(keysLen)
	if err != nil {
		return err
	}
	if x.Peer, err = parseKeys(message); err != nil {
		return err
	}
	return x.Peer.check()
}

// Prepare takes the rounds until both sides are ready.
func (x *Conversation) Prepare() error {
	for range rounds {
		message, err := x.swap(x.Own.message())
		if err == nil {
			err = x.recognise(message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recognise insists on the peer's keys as they were.
func (x *Conversation) recognise(message []byte) error {
	keys, err := parseKeys(message)
	if err == nil && keys != x.Peer {
		err = fmt.Errorf("the peer's address was %v and is %v; more than one queue pair (-q) is not spoken: %w", x.Peer.Destination, keys.Destination, unix.EBADMSG)
	}
	return err
}

// AwaitEnd is the server's wait for the client's last keys.
func (x *Conversation) AwaitEnd() error {
	message, err := x.read(keysLen)
	if err != nil {
		return err
	}
	return x.recognise(message)
}

// End is the last exchange. A server has awaited the client's half before.
func (x *Conversation) End() error {
	err := x.write(x.Own.message())
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
