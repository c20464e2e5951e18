// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"encoding/binary"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	// maxMessages is the maximum number of datagrams, or rows of packets, that one system call receives.
	maxMessages = 32
	// room is the maximum length of a row of packets, in bytes.
	room = 1 << 16
	// headroom is the space for the headers of the first packet of a row, in bytes.
	headroom = (wire.EthernetLen + wire.IPv6Len + wire.UDPLen + 63) &^ 63
	// controlRoom is the space for the ancillary data of a datagram, in bytes, with a reserve.
	controlRoom = 256
)

// receiver is the receiving half of a Link.
//
//	       ┌ headroom ┬ packet ┬ packet ┬ … ┬ packet ┐   one message: a row
//	Next:   └ headers ┘
//	         Next:  └ headers ┘                          overwrite the end of the previous packet
type receiver struct {
	messages [maxMessages]message
	pieces   [maxMessages]unix.Iovec
	names    [maxMessages]name
	controls [maxMessages][controlRoom]byte
	memory   []byte // buffers of maxMessages messages
	want     int    // number of messages to request

	rows  [maxMessages]row // rows of the last Receive
	row   int              // index of the current row
	count int              // number of rows
	last  []byte           // the last frame that Next returned
	ids   guesses

	flow    flow // flow of the headers in headers
	headers wire.Template
}

// row consists of consecutive packets of one flow and length, of which the last may be shorter (UDP GRO).
type row struct {
	flow    flow
	port    uint16 // UDP port of the sender
	at, end int    // position in memory of the remaining packets
	length  int    // length of a packet, in bytes
	begun   bool   // Next has returned a packet of the row
}

// flow holds the header fields of a packet, except for ports and lengths.
type flow struct {
	source, dest [16]byte
	class, hops  byte
	six          bool
}

func (r *receiver) allocate() {
	r.memory = make([]byte, maxMessages*(headroom+room))
	r.want = maxMessages
	for i := range r.messages {
		r.aim(i)
	}
}

func (r *receiver) aim(i int) {
	buffer := r.memory[i*(headroom+room):][:headroom+room]
	r.messages[i].aim(&r.names[i], &r.pieces[i], buffer[headroom:], r.controls[i][:])
}

// receive receives from a socket. It returns the number of packets, and whether the socket may have more.
func (r *receiver) receive(s *Socket, lost *losses) (packets int, more bool) {
	n, errno := receiveMessages(s.fd, r.messages[:r.want])
	if errno != 0 && errno != unix.EAGAIN { // a signal, or a pending socket error, which the call has cleared
		n, errno = receiveMessages(s.fd, r.messages[:r.want])
	}
	if errno != 0 {
		r.want = 1
		return 0, false
	}
	r.row, r.count = 0, 0
	for i := range n {
		packets += r.take(i, lost)
		r.aim(i)
	}
	more = n == r.want
	r.want = nextWant(n, packets, more)
	return packets, more
}

// nextWant returns the number of messages to request next. If only one message is waiting, a request for a second one
// costs as much as a system call.
func nextWant(messages, packets int, more bool) int {
	switch {
	case packets > 8*messages: // a few long rows fill the processor's cache
		return 2
	case messages <= 1 && !more:
		return 1
	}
	return maxMessages
}

// take adds a message to the rows, and returns the number of its packets.
func (r *receiver) take(i int, lost *losses) (packets int) {
	row := &r.rows[r.count]
	if !r.read(row, i, lost) {
		return 0
	}
	r.count++
	if row.at == row.end { // an empty datagram
		return 1
	}
	return (row.end - row.at + row.length - 1) / row.length
}

// read reads the header and ancillary data of a message. It returns false if the message must be dropped.
func (r *receiver) read(row *row, i int, lost *losses) bool {
	m, from := &r.messages[i], &r.names[i]
	var about told
	switch controlLen := int(m.header.Controllen); {
	case m.header.Flags&unix.MSG_TRUNC != 0:
		lost.truncated.Add(1)
		return false
	case m.header.Flags&unix.MSG_CTRUNC != 0 || controlLen > controlRoom:
		lost.control.Add(1)
		return false
	default:
		about.read(r.controls[i][:controlLen])
	}
	if !about.hasDest {
		lost.control.Add(1)
		return false
	}
	length := int(m.length)
	row.flow = flow{dest: about.dest, class: about.class, hops: about.hops}
	row.port = binary.BigEndian.Uint16(from[2:])
	if row.flow.six = binary.NativeEndian.Uint16(from[:]) == unix.AF_INET6; row.flow.six {
		copy(row.flow.source[:], from[8:24])
	} else {
		copy(row.flow.source[:], from[4:8])
	}
	row.at, row.length, row.begun = i*(headroom+room)+headroom, length, false
	row.end = row.at + length
	if about.segment > 0 {
		row.length = min(about.segment, length)
	}
	return true
}

// Next implements link.Link.
func (r *receiver) Next() []byte {
	r.learn()
	row := &r.rows[r.row]
	if row.begun && row.at == row.end {
		r.row++
		row = &r.rows[r.row]
	}
	if row.flow != r.flow || r.headers.HeaderLen() == 0 {
		r.flow, r.headers = row.flow, row.flow.template()
	}
	length := min(row.length, row.end-row.at)
	begin := row.at - r.headers.HeaderLen()
	r.last = r.memory[begin : row.at+length : row.at+length]
	r.headers.PutHeaders(r.last, r.ids.next(!row.begun), row.port)
	row.at, row.begun = row.at+length, true
	return r.last
}

// Behind implements link.Link.
func (r *receiver) Behind(int) []byte { return nil }

// Release implements link.Link.
func (r *receiver) Release() {
	r.learn()
	r.last = nil
}

// learn records the identification of the last packet, which the engine has corrected if the guess was wrong.
func (r *receiver) learn() {
	if r.last != nil && !r.flow.six {
		r.ids.was(binary.BigEndian.Uint16(r.last[wire.EthernetLen+4:]))
	}
}

// template returns the headers of a flow's packets.
func (f *flow) template() wire.Template {
	path := wire.Path{TrafficClass: f.class, HopLimit: f.hops}
	if f.six {
		path.Source, path.Dest = f.source, f.dest
	} else {
		path.Source, path.Dest = mapped(f.source), mapped(f.dest)
	}
	return wire.NewTemplate(path)
}

func mapped(address [16]byte) wire.GID { return wire.GIDFromAddr(netip.AddrFrom4([4]byte(address[:]))) }

// guesses guesses IPv4 identifications. They increase within a row. A row begins with 0, as in Linux, or with the
// identification after that of the previous row, as in other systems.
type guesses struct {
	last   uint16 // identification of the last packet
	first  bool   // the last packet began a row
	counts bool   // rows do not begin with 0
}

func (g *guesses) next(first bool) uint16 {
	g.first = first
	if first && !g.counts {
		return 0
	}
	return g.last + 1
}

func (g *guesses) was(id uint16) {
	if g.last = id; g.first {
		g.counts = id != 0
	}
}
