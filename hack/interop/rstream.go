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

// newRstream returns rstream, which exchanges transfers of a length over an rsocket, and compares every byte (-T v).
// First each side sends a transfer of 16 bytes.
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
		asServer: func(ctx context.Context, e *idEnd) error {
			return exchange(ctx, e, (*rsocket).receiveCount, (*rsocket).sendCount)
		},
		asClient: func(ctx context.Context, e *idEnd) error {
			return exchange(ctx, e, (*rsocket).sendCount, (*rsocket).receiveCount)
		},
		shows: fmt.Sprintf("%d transfers each way of %d bytes", rounds*transfers, size),
	}
}

// rsocket is a byte stream over a connection, as in librdmacm's rsockets. Bytes are sent by RDMA WRITEs to a half of
// the other side's buffer. Their immediate data contains the type and length of a message. The other side announces its
// halves alternately, by writing their addresses to one of two targets.
type rsocket struct {
	*idEnd
	target, announced int    // own target in use; the peer's target that is written next
	targets           uint64 // address of the peer's targets
	key               verbs.RKey
	sent, allowed     uint16 // messages
	taken, granted    uint16 // messages of the peer
	unread, free      int    // bytes of the buffer
	place, freePlace  int    // offsets in the buffer
	counted, expected byte   // next verified byte to send and to receive
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
	rsocketCredits = maxConnected - 4 // the peer's control messages consume receives too
)

// Types of messages, in the upper three bits of the immediate data.
const (
	messageData    = 0
	messageTarget  = 4 // contains the number of allowed messages
	messageControl = 7
	messageBits    = 29
)

// rsocketData returns the private data of the connection: version, flags (0 for little-endian targets), allowed
// messages, 4 bytes of 0, the address of the targets, and the first target.
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
	const minLength = 8 + 2*targetLen
	b := e.conn.RemotePrivateData()
	if len(b) < minLength || b[0] != rsocketVersion {
		return nil, fmt.Errorf("the peer's private data is not that of an rsocket: %x: %w", b, unix.EBADMSG)
	}
	s := &rsocket{idEnd: e, announced: 1, free: rsocketHalf, freePlace: rsocketHalf, allowed: binary.BigEndian.Uint16(b[2:])}
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

// sendCount sends bytes that continue the counting of the earlier ones.
func (s *rsocket) sendCount(ctx context.Context, length int) error {
	for length > 0 {
		entry := s.region.Bytes()[targetsPlace+s.target*targetLen:]
		room := binary.LittleEndian.Uint32(entry[12:])
		if room == 0 || s.sent == s.allowed {
			if err := s.receiveMessage(ctx); err != nil {
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

// isLast reports whether a message was sent, or was the last one of a transfer whose peer closed the connection before
// the ACK arrived: a peer that has all data closes immediately, and its ACK can be lost. The peer reports missing data,
// and a later transfer would fail.
func isLast(err error, left int) bool {
	return err == nil || left == 0 && errors.Is(err, rc.ErrDisconnected)
}

// write sends a message with the data at sourcePlace.
func (s *rsocket) write(ctx context.Context, imm uint32, length int, addr uint64, key verbs.RKey) error {
	there := rc.RemoteRegion{Addr: addr, Length: uint32(length), Key: key}
	return s.conn.Do(ctx, rc.Request{Opcode: verbs.WRRDMAWriteWithImm, Imm: imm, Region: s.region, Offset: sourcePlace, Length: length, Remote: there})
}

// receiveCount receives bytes and compares them.
func (s *rsocket) receiveCount(ctx context.Context, length int) error {
	for length > 0 {
		if s.unread == 0 {
			if err := s.receiveMessage(ctx); err != nil {
				return err
			}
			continue
		}
		n := min(length, s.unread, rsocketBuffer-s.place)
		for i, got := range s.region.Bytes()[s.place:][:n] {
			if got != s.expected {
				return fmt.Errorf("byte %d of %d: got %#x, want %#x", i, n, got, s.expected)
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

// receiveMessage receives a message of the peer.
func (s *rsocket) receiveMessage(ctx context.Context) error {
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
		return fmt.Errorf("the peer closed the stream (%d): %w", data, unix.EPIPE)
	default:
		return fmt.Errorf("unknown message %#x: %w", m.Imm, unix.EBADMSG)
	}
	return nil
}

// grant announces a free half of the buffer, or more allowed messages, when enough have been used.
func (s *rsocket) grant(ctx context.Context) error {
	half := s.free >= rsocketHalf
	if !half && s.taken-s.granted < rsocketCredits/2 {
		return nil
	}
	s.granted = s.taken
	imm := uint32(messageTarget)<<messageBits | uint32(s.taken+rsocketCredits)
	if !half {
		return s.write(ctx, imm, 0, 0, 0)
	}
	own := s.region.Remote()
	putTarget(s.region.Bytes()[sourcePlace:], own.Addr+uint64(s.freePlace), uint32(own.Key), rsocketHalf)
	to := s.targets + uint64(s.announced*targetLen)
	s.free, s.freePlace, s.announced = s.free-rsocketHalf, (s.freePlace+rsocketHalf)%rsocketBuffer, (s.announced+1)%targetCount
	return s.write(ctx, imm, targetLen, to, s.key)
}
