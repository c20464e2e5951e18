// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"encoding/binary"

	"github.com/roced/roced/datapath/wire"
)

// build builds messages from the first frames, as long as they use the same socket. It returns the socket and the
// number of messages.
func (s *sender) build() (fd, trains int) {
	s.used = 0
	for place := 0; place < s.count && trains < maxTrains; {
		at := headersOf(s.frame(place))
		through := s.ports.socket(s.leaves[*s.at(place)])
		if trains > 0 && through != fd {
			break
		}
		fd = through
		size := s.train(place, &at)
		s.describe(trains, place, size, &at)
		s.sizes[trains] = size
		trains++
		place += size
	}
	return fd, trains
}

// train returns the number of frames, from a place on, that can be sent as one train.
func (s *sender) train(place int, at *headers) (size int) {
	length := len(at.frame)
	bytes := length - at.bth
	if place < s.alone || s.unable.Load() || s.withoutTrains.Load() {
		return 1
	}
	for size = 1; place+size < s.count && size < maxTrain; size++ {
		next := s.frame(place + size)
		bytes += len(next) - at.bth
		if len(next) > length || bytes > maxTrainBytes || !at.sameFlow(next) {
			break
		}
		if len(next) < length {
			return size + 1
		}
	}
	return size
}

// describe builds the message of a train.
func (s *sender) describe(message, place, size int, at *headers) {
	begin := s.used
	for i := range size {
		frame := s.frame(place + i)
		if !at.six {
			s.number(frame, at, uint16(i))
		}
		setPiece(&s.pieces[s.used], frame[at.bth:])
		s.used++
	}
	control, to := s.controls[message][:], &s.names[message]
	nameLen := at.putDestination(to, s.index)
	segment := 0
	if size > 1 {
		segment = len(at.frame) - at.bth
	}
	control = control[:at.putControls(control, s.index, segment)]
	s.messages[message].describe(to, nameLen, &s.pieces[begin], size, control)
}

// number sets a frame's identification to the one that the kernel will assign, and corrects the ICRC accordingly.
func (s *sender) number(frame []byte, at *headers, id uint16) {
	field := frame[wire.EthernetLen+4:]
	was := binary.BigEndian.Uint16(field)
	if was == id {
		return
	}
	binary.BigEndian.PutUint16(field, id)
	icrc := frame[len(frame)-wire.ICRCLen:]
	binary.LittleEndian.PutUint32(icrc, binary.LittleEndian.Uint32(icrc)^s.numbering.Effect(len(frame)-at.bth, was^id))
}
