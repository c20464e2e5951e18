package udplink

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	frameCount = 256 // frames that can wait to be sent
	frameSize  = (wire.MaxHeaders + 4096 + wire.MaxTrailer + 63) &^ 63
	early      = 64 // frames that are sent before the engine flushes: they are in the processor's cache
	maxTrains  = 16 // in one call
	// maxTrain is how many packets a train has at most (UDP_MAX_SEGMENTS; 128 since Linux 6.9), and
	// maxTrainBytes how many bytes behind the UDP header.
	maxTrain      = 64
	maxTrainBytes = 65535 - wire.IPv4Len - wire.UDPLen
)

// sender is the sending half of a Link.
//
//	Reserve, Commit ──► frames: a ring ──► Flush: trains, each with a correct ICRC in each packet ──► a port
type sender struct {
	ports     ports
	index     uint32 // the interface's, for groups and addresses of its link
	numbering wire.Numbering

	memory       []byte
	lengths      [frameCount]int
	first, count int // of the frames that wait
	alone        int // frames at the front that do not leave in trains

	messages      [maxTrains]message
	sizes         [maxTrains]int // packets of each
	names         [maxTrains]name
	controls      [maxTrains][controlRoom]byte
	pieces        [frameCount]unix.Iovec
	used          int         // of pieces
	unable        atomic.Bool // the kernel does not make packets of trains
	withoutTrains atomic.Bool
	refused       int
	takenBack     int
	sent          struct{ frames, trains, inTrains atomic.Uint64 }
}

func (s *sender) allocate() { s.memory = make([]byte, frameCount*frameSize) }

// frame is the frame that so many others wait before.
func (s *sender) frame(place int) []byte {
	place = (s.first + place) % frameCount
	return s.memory[place*frameSize:][:s.lengths[place]]
}

// Reserve implements link.Link.
func (s *sender) Reserve() []byte {
	if s.count == frameCount && !s.Flush() && s.count == frameCount {
		return nil
	}
	return s.memory[(s.first+s.count)%frameCount*frameSize:][:frameSize]
}

// Commit implements link.Link.
func (s *sender) Commit(length int) {
	s.lengths[(s.first+s.count)%frameCount] = length
	if s.count++; s.count%early == 0 {
		s.Flush()
	}
}

// Flush implements link.Link.
func (s *sender) Flush() bool {
	for s.count > 0 {
		fd, trains := s.build()
		n, errno := sendMessages(fd, s.messages[:trains])
		if n <= 0 || errno != 0 {
			if !s.fail(errno) {
				return false
			}
			continue
		}
		for _, size := range s.sizes[:n] {
			s.note(size)
			s.remove(size)
		}
	}
	return true
}

// remove takes frames from the front. An empty ring starts over at the first frames, which are likely in the
// processor's cache.
func (s *sender) remove(frames int) {
	s.first, s.count, s.alone = (s.first+frames)%frameCount, s.count-frames, max(0, s.alone-frames)
	if s.count == 0 {
		s.first = 0
	}
}

func (s *sender) note(size int) {
	if size == 1 {
		s.sent.frames.Add(1)
		return
	}
	s.sent.trains.Add(1)
	s.sent.inTrains.Add(uint64(size))
}

// fail is for the first of the messages, which was not sent. It returns false if it has to wait.
func (s *sender) fail(errno unix.Errno) bool {
	size := s.sizes[0]
	switch errno {
	case unix.EAGAIN, unix.ENOMEM:
		return false
	case unix.EINTR:
		return true
	case unix.EINVAL, unix.EMSGSIZE, unix.EIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		if size > 1 { // longer than the path's MTU, or nobody here can cut it
			s.alone = size
			if errno == unix.EIO || errno == unix.EOPNOTSUPP || errno == unix.ENOPROTOOPT {
				s.unable.Store(true)
			}
			return true
		}
	}
	s.refused += size
	s.remove(size)
	return true
}

// build makes messages of frames from the front, as long as they leave through one socket.
func (s *sender) build() (fd, trains int) {
	s.used = 0
	for place := 0; place < s.count && trains < maxTrains; {
		at := headersOf(s.frame(place))
		through := s.ports.socket(at.sourcePort(), at.six)
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

// train is how many frames from one on can leave as a train.
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

// describe makes the message of a train.
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

// number has a frame's ICRC fit the identification that the kernel will give it.
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

// TakeBack implements link.Link.
func (s *sender) TakeBack() {
	s.takenBack += s.count
	s.remove(s.count)
}

// TakenBack implements link.Link.
func (s *sender) TakenBack() (frames int) {
	frames, s.takenBack = s.takenBack, 0
	return frames
}

// SetTrains sets whether packets leave in trains. At first they do.
func (s *sender) SetTrains(use bool) { s.withoutTrains.Store(!use) }

// TrainsUnable reports whether the kernel has refused a train for good. Any goroutine may call it.
func (s *sender) TrainsUnable() bool { return s.unable.Load() }

// Refused implements link.Link.
func (s *sender) Refused() (frames int) {
	frames, s.refused = s.refused, 0
	return frames
}

// Sent says how packets have left. Any goroutine may call it.
func (s *sender) Sent() link.Sent {
	return link.Sent{Frames: s.sent.frames.Load(), Trains: s.sent.trains.Load(), InTrains: s.sent.inTrains.Load()}
}

// headers are the places of the headers of a frame that the engine has built, which has no VLAN tag.
type headers struct {
	frame []byte
	bth   int
	six   bool
}

func headersOf(frame []byte) headers {
	at := headers{frame: frame, bth: wire.EthernetLen + wire.IPv4Len + wire.UDPLen}
	if at.six = frame[wire.EthernetLen]>>4 == 6; at.six {
		at.bth = wire.EthernetLen + wire.IPv6Len + wire.UDPLen
	}
	return at
}

func (at *headers) ip() []byte         { return at.frame[wire.EthernetLen:at.bth] }
func (at *headers) sourcePort() uint16 { return binary.BigEndian.Uint16(at.frame[at.bth-wire.UDPLen:]) }

// sameFlow says whether another frame has the same headers, except for lengths, checksums and identification.
func (at *headers) sameFlow(other []byte) bool {
	if len(other) < at.bth {
		return false
	}
	a, b := at.ip(), other[wire.EthernetLen:at.bth]
	if at.six {
		return [4]byte(a) == [4]byte(b) && bytes.Equal(a[6:wire.IPv6Len+4], b[6:wire.IPv6Len+4])
	}
	return [2]byte(a) == [2]byte(b) && a[8] == b[8] && bytes.Equal(a[12:wire.IPv4Len+4], b[12:wire.IPv4Len+4])
}

// putDestination writes the address that the frame goes to, and returns its length. An address of the interface's link
// has the interface with it.
func (at *headers) putDestination(to *name, index uint32) int {
	ip := at.ip()
	clear(to[:])
	binary.BigEndian.PutUint16(to[2:], wire.UDPPort)
	if !at.six {
		binary.NativeEndian.PutUint16(to[:], unix.AF_INET)
		copy(to[4:], ip[16:20])
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(to[:], unix.AF_INET6)
	copy(to[8:], ip[24:40])
	if onLink(ip[24:40]) {
		binary.NativeEndian.PutUint32(to[24:], index)
	}
	return unix.SizeofSockaddrInet6
}

// onLink says that an IPv6 address needs an interface: fe80::/10, and groups.
func onLink(address []byte) bool {
	return address[0] == 0xff || address[0] == 0xfe && address[1]&0xc0 == 0x80
}

// putControls writes source address, interface, hop limit, traffic class, and the length of a train's packets, and
// returns the length of it all. Packets for groups leave through the interface; for others the kernel knows the way.
func (at *headers) putControls(control []byte, index uint32, segment int) int {
	ip, room := at.ip(), len(control)
	if at.six {
		data, rest := putControl(control, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
		copy(data, ip[8:24])
		if !onLink(ip[24:40]) {
			index = 0
		}
		binary.NativeEndian.PutUint32(data[16:], index)
		rest = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT, int(ip[7]))
		control = putControlInt(rest, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(binary.BigEndian.Uint16(ip)>>4&0xff))
	} else {
		data, rest := putControl(control, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		if ip[16]>>4 != 0xe {
			index = 0
		}
		binary.NativeEndian.PutUint32(data, index)
		copy(data[4:8], ip[12:16])
		rest = putControlInt(rest, unix.IPPROTO_IP, unix.IP_TTL, int(ip[8]))
		control = putControlInt(rest, unix.IPPROTO_IP, unix.IP_TOS, int(ip[1]))
	}
	if segment > 0 {
		data, rest := putControl(control, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
		binary.NativeEndian.PutUint16(data, uint16(segment))
		control = rest
	}
	return room - len(control)
}
