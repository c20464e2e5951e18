package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// perftestVersion is what is spoken: that of Debian 12's package perftest 4.5+0.17. What
// ib_send_bw and ib_send_lat tell each other over TCP has no description, and changes.
const perftestVersion = "6.06"

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
// Neither what is measured, nor the size, nor the count are told: both sides have them
// from their command lines.
const (
	perftestVersionLen = 16
	perftestPage       = 4096
	perftestCacheLine  = 64
	perftestMTULen     = 2
	perftestRounds     = 3
	perftestDone       = "done\x00"
)

// perftestKeys are a side's queue pair, in the text of perftest's KEY_PRINT_FMT_GID:
//
//	0000:0001:000011:f591df:00001234:000055d8fe2c0000:00:…:0a:42:00:02:00000000: NUL
//	LID  out  QPN    PSN    R_Key    address          GID, 16 bytes    SRQ
//
// A group's member gives the group instead, with QPN ffffff. What datagrams have no
// use for is kept as it is.
type perftestKeys struct {
	destination
	OutReads uint16
	RKey     uint32
	Address  uint64
	SRQ      uint32
}

const perftestKeysLen = 108

// perftestFields are the widths of the fields, in digits. A colon ends each.
var perftestFields = [...]int{4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8}

// The fields by number.
const (
	fieldLID = iota
	fieldOutReads
	fieldQPN
	fieldPSN
	fieldRKey
	fieldAddress
	fieldGID
	fieldSRQ = fieldGID + 16
)

func (k perftestKeys) message() []byte {
	m := fmt.Appendf(nil, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, uint32(k.QPN), uint32(k.PSN), k.RKey, k.Address)
	for _, b := range k.GID {
		m = fmt.Appendf(m, "%02x:", b)
	}
	return fmt.Appendf(m, "%08x:\x00", k.SRQ)
}

// parsePerftestKeys is strict: each field has its width. Any other text is EBADMSG.
func parsePerftestKeys(m []byte) (k perftestKeys, err error) {
	values, ok := perftestValues(m)
	if !ok {
		return k, fmt.Errorf("%q is not an address as perftest %s sends it: %w", m, perftestVersion, unix.EBADMSG)
	}
	k.LID, k.OutReads = uint16(values[fieldLID]), uint16(values[fieldOutReads])
	k.QPN, k.PSN = verbs.QPN(values[fieldQPN]), verbs.PSN(values[fieldPSN])
	k.RKey, k.Address, k.SRQ = uint32(values[fieldRKey]), values[fieldAddress], uint32(values[fieldSRQ])
	for i := range k.GID {
		k.GID[i] = byte(values[fieldGID+i])
	}
	return k, nil
}

func perftestValues(m []byte) (values [len(perftestFields)]uint64, ok bool) {
	if len(m) != perftestKeysLen || m[perftestKeysLen-1] != 0 {
		return values, false
	}
	for i, width := range perftestFields {
		if values[i], ok = hexNumber(m[:width]); !ok || m[width] != ':' {
			return values, false
		}
		m = m[width+1:]
	}
	return values, true
}

// check rejects what no datagram can be sent to. It is EBADMSG.
func (k *perftestKeys) check() error {
	if k.isGroup() {
		return nil
	}
	return k.destination.check()
}

func (k *perftestKeys) isGroup() bool { return k.QPN == verbs.MulticastQPN && k.GID.IsMulticast() }

// perftestExchange is the conversation of one side.
type perftestExchange struct {
	conn      io.ReadWriter
	client    bool
	own, peer perftestKeys
}

// swap sends the own message and reads the peer's of the same length.
func (x *perftestExchange) swap(own []byte) (peer []byte, err error) {
	steps := []func() error{func() error { return x.write(own) }, func() (err error) { peer, err = x.read(len(own)); return err }}
	if !x.client {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return peer, nil
}

func (x *perftestExchange) write(message []byte) error {
	if _, err := x.conn.Write(message); err != nil {
		return fmt.Errorf("send to perftest: %w", err)
	}
	return nil
}

func (x *perftestExchange) read(length int) ([]byte, error) {
	message := make([]byte, length)
	if _, err := io.ReadFull(x.conn, message); err != nil {
		return nil, fmt.Errorf("read from perftest: %w", err)
	}
	return message, nil
}

// greet exchanges what does not concern the queue pairs, and gives the peer's MTU.
func (x *perftestExchange) greet(mtu wire.MTU) (wire.MTU, error) {
	if err := x.greetVersion(); err != nil {
		return 0, err
	}
	for _, n := range []uint32{perftestPage, perftestCacheLine} {
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
		return 0, fmt.Errorf("%q is not an MTU as perftest %s sends it: %w", digit, perftestVersion, unix.EBADMSG)
	}
	return peer, nil
}

// greetVersion insists on the version that is spoken. Another is EPROTONOSUPPORT.
func (x *perftestExchange) greetVersion() error {
	var own [perftestVersionLen]byte
	copy(own[:], perftestVersion)
	peer, err := x.swap(own[:])
	if err != nil || string(peer) == string(own[:]) {
		return err
	}
	return fmt.Errorf("the peer's first words are %q; spoken is perftest %s, which calls itself so with -V (Debian 12's package perftest 4.5+0.17): %w",
		peer, perftestVersion, unix.EPROTONOSUPPORT)
}

// meet exchanges keys. The server makes its own when it knows the client's; the client
// is given nil.
func (x *perftestExchange) meet(self func(peer *perftestKeys) (perftestKeys, error)) (err error) {
	if x.client {
		if x.own, err = self(nil); err != nil {
			return err
		}
		if err := x.write(x.own.message()); err != nil {
			return err
		}
		return x.readPeer()
	}
	if err := x.readPeer(); err != nil {
		return err
	}
	if x.own, err = self(&x.peer); err != nil {
		return err
	}
	return x.write(x.own.message())
}

func (x *perftestExchange) readPeer() error {
	message, err := x.read(perftestKeysLen)
	if err != nil {
		return err
	}
	if x.peer, err = parsePerftestKeys(message); err != nil {
		return err
	}
	return x.peer.check()
}

// prepare takes the rounds until both sides are ready.
func (x *perftestExchange) prepare() error {
	for range perftestRounds {
		message, err := x.swap(x.own.message())
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
func (x *perftestExchange) recognise(message []byte) error {
	keys, err := parsePerftestKeys(message)
	if err == nil && keys != x.peer {
		err = fmt.Errorf("the peer's address was %v and is %v; more than one queue pair (-q) is not spoken: %w", x.peer.destination, keys.destination, unix.EBADMSG)
	}
	return err
}

// awaitEnd is the server's wait for the client's last keys.
func (x *perftestExchange) awaitEnd() error {
	message, err := x.read(perftestKeysLen)
	if err != nil {
		return err
	}
	return x.recognise(message)
}

// end is the last exchange. A server has awaited the client's half before.
func (x *perftestExchange) end() error {
	err := x.write(x.own.message())
	if err == nil && x.client {
		err = x.awaitEnd()
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(x.conn, perftestDone); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("say done to perftest: %w", err)
	}
	return nil
}
