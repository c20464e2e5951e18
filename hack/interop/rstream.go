// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

// newRstream is rstream, which exchanges transfers of a length over an rsocket, and compares every byte (-T v).
// Before them each side sends one of 16 bytes.
func newRstream(size, mtu int) idProgram {
	const rounds, transfers, hello = 20, 4, 16
	arguments := fmt.Sprintf("-S %d -C %d -I %d -T v 2>&1", size, transfers, rounds)
	exchange := func(ctx context.Context, e *idEnd, first, second func(*rsocket, context.Context, int) error) error {
		s, err := e.rsocket()
		if err == nil {
			err = errors.Join(first(s, ctx, hello), second(s, ctx, hello))
		}
		for n := 0; n < rounds && err == nil; n++ {
			for range transfers {
				err = errors.Join(err, first(s, ctx, size))
			}
			for range transfers {
				err = errors.Join(err, second(s, ctx, size))
			}
		}
		return errors.Join(err, e.disconnected(ctx))
	}
	return idProgram{
		port: 7471, server: "rstream -b %v " + arguments, client: "rstream -s %v " + arguments, mtu: mtu, private: (*idEnd).rsocketData,
		serve: func(ctx context.Context, e *idEnd) error {
			return exchange(ctx, e, (*rsocket).takeCount, (*rsocket).giveCount)
		},
		ask: func(ctx context.Context, e *idEnd) error {
			return exchange(ctx, e, (*rsocket).giveCount, (*rsocket).takeCount)
		},
		shows: fmt.Sprintf("%d transfers each way of %d bytes", rounds*transfers, size),
	}
}

// rsocket is a stream of bytes over a connection, as in librdmacm's rsockets. Bytes are sent by RDMA WRITEs into a
// half of the other side's buffer. Their immediate data contains the type and length of a message. The other side
// announces its halves in turn, by writing their addresses into one of two targets.
type rsocket struct {
	*idEnd
	target, given     int    // the target in use; the one of the peer's that is written next
	targets           uint64 // where the peer's are
	key               verbs.RKey
	sent, allowed     uint16 // messages
	taken, granted    uint16 // messages of the peer's
	unread, free      int    // bytes of the buffer
	place, freePlace  int    // in it
	counted, expected byte   // what verified bytes go on with
}

// Offsets in the end's region.
const (
	rsocketHalf   = 32 << 10
	rsocketBuffer = 2 * rsocketHalf
	targetsPlace  = rsocketBuffer
	sourcePlace   = rsocketBuffer + 4096
	targetLen     = 16
	targetCount   = 2

	rsocketVersion = 1
	rsocketCredits = maxConnected - 4 // the peer's messages of control take receives too
)

// The kinds of messages, in the upper three bits of the immediate data.
const (
	messageData    = 0
	messageTarget  = 4 // and how many messages are allowed
	messageControl = 7
	messageBits    = 29
)

// rsocketData returns the private data that the two sides exchange when they connect: version, flags (0:
// little-endian targets), messages allowed, 4 bytes, the address of the targets, and the first target.
func (e *idEnd) rsocketData() []byte {
	b := binary.BigEndian.AppendUint16([]byte{rsocketVersion, 0}, rsocketCredits)
	b = append(b, 0, 0, 0, 0)
	own := e.region.Remote()
	for _, part := range []struct{ offset, length int }{{targetsPlace, targetCount}, {0, rsocketHalf}} {
		b = binary.BigEndian.AppendUint64(b, own.Addr+uint64(part.offset))
		b = binary.BigEndian.AppendUint32(b, uint32(own.Key))
		b = binary.BigEndian.AppendUint32(b, uint32(part.length))
	}
	return b
}

// rsocket starts a stream with the peer's private data.
func (e *idEnd) rsocket() (*rsocket, error) {
	const told = 8 + 2*targetLen
	b := e.conn.RemotePrivateData()
	if len(b) < told || b[0] != rsocketVersion {
		return nil, fmt.Errorf("the peer's private data are no rsocket's: %x: %w", b, unix.EBADMSG)
	}
	s := &rsocket{idEnd: e, given: 1, free: rsocketHalf, freePlace: rsocketHalf, allowed: binary.BigEndian.Uint16(b[2:])}
	s.targets, s.key = binary.BigEndian.Uint64(b[8:]), verbs.RKey(binary.BigEndian.Uint32(b[16:]))
	s.setTarget(0, binary.BigEndian.Uint64(b[24:]), binary.BigEndian.Uint32(b[32:]), binary.BigEndian.Uint32(b[36:]))
	return s, nil
}

func (s *rsocket) setTarget(i int, addr uint64, key, length uint32) {
	putTarget(s.region.Bytes()[targetsPlace+i*targetLen:], addr, key, length)
}

func putTarget(b []byte, addr uint64, key, length uint32) {
	binary.LittleEndian.PutUint64(b, addr)
	binary.LittleEndian.PutUint32(b[8:], key)
	binary.LittleEndian.PutUint32(b[12:], length)
}

// giveCount sends bytes that count on from those before.
func (s *rsocket) giveCount(ctx context.Context, length int) error {
	for length > 0 {
		entry := s.region.Bytes()[targetsPlace+s.target*targetLen:]
		room := binary.LittleEndian.Uint32(entry[12:])
		if room == 0 || s.sent == s.allowed {
			if err := s.take(ctx); err != nil {
				return err
			}
			continue
		}
		n := min(length, int(room), rsocketHalf)
		for i := range n {
			s.region.Bytes()[sourcePlace+i] = s.counted
			s.counted++
		}
		addr, key := binary.LittleEndian.Uint64(entry), binary.LittleEndian.Uint32(entry[8:])
		if s.setTarget(s.target, addr+uint64(n), key, room-uint32(n)); n == int(room) {
			s.target = (s.target + 1) % targetCount
		}
		s.sent++
		length -= n
		if err := s.write(ctx, messageData<<messageBits|uint32(n), n, addr, verbs.RKey(key)); !isLast(err, length) {
			return err
		}
	}
	return nil
}

// isLast reports whether a message was sent, or was the last of a transfer whose peer has closed the connection
// instead of acknowledging it: a peer that has all data closes at once, and its ACK may be lost. The peer reports
// whether it has all data, and a following transfer would fail.
func isLast(err error, left int) bool {
	return err == nil || left == 0 && errors.Is(err, rc.ErrDisconnected)
}

// write sends a message with the data at sourcePlace.
func (s *rsocket) write(ctx context.Context, says uint32, length int, addr uint64, key verbs.RKey) error {
	there := rc.RemoteRegion{Addr: addr, Length: uint32(length), Key: key}
	return s.conn.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWriteWithImm, Imm: says, Region: s.region, Offset: sourcePlace, Length: length, Remote: there})
}

// takeCount receives bytes, and compares them.
func (s *rsocket) takeCount(ctx context.Context, length int) error {
	for length > 0 {
		if s.unread == 0 {
			if err := s.take(ctx); err != nil {
				return err
			}
			continue
		}
		n := min(length, s.unread, rsocketBuffer-s.place)
		for i, got := range s.region.Bytes()[s.place:][:n] {
			if got != s.expected {
				return fmt.Errorf("byte %d of %d is %#x, not %#x", i, n, got, s.expected)
			}
			s.expected++
		}
		s.place = (s.place + n) % rsocketBuffer
		s.unread, s.free, length = s.unread-n, s.free+n, length-n
		if err := s.grant(ctx); !isLast(err, length) {
			return err
		}
	}
	return nil
}

// take takes a message of the peer's.
func (s *rsocket) take(ctx context.Context) error {
	m, err := s.conn.Recv(ctx)
	if err != nil {
		return err
	}
	defer m.Release()
	switch data := m.Imm & (1<<messageBits - 1); m.Imm >> messageBits {
	case messageData:
		s.unread += int(data)
		s.taken++
	case messageTarget:
		s.allowed = uint16(data)
	case messageControl:
		return fmt.Errorf("the peer ends the stream (%d): %w", data, unix.EPIPE)
	default:
		return fmt.Errorf("a message %#x: %w", m.Imm, unix.EBADMSG)
	}
	return nil
}

// grant gives the peer a half of the buffer that is free, or more messages, when it is time for it.
func (s *rsocket) grant(ctx context.Context) error {
	half := s.free >= rsocketHalf
	if !half && s.taken-s.granted < rsocketCredits/2 {
		return nil
	}
	s.granted = s.taken
	says := uint32(messageTarget)<<messageBits | uint32(s.taken+rsocketCredits)
	if !half {
		return s.write(ctx, says, 0, 0, 0)
	}
	own := s.region.Remote()
	putTarget(s.region.Bytes()[sourcePlace:], own.Addr+uint64(s.freePlace), uint32(own.Key), rsocketHalf)
	to := s.targets + uint64(s.given*targetLen)
	s.free, s.freePlace, s.given = s.free-rsocketHalf, (s.freePlace+rsocketHalf)%rsocketBuffer, (s.given+1)%targetCount
	return s.write(ctx, says, targetLen, to, s.key)
}
