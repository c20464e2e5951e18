// SPDX-License-Identifier: Apache-2.0

package pcapng

import (
	"encoding/binary"
	"io"
	"time"
)

// Blocks and options.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 6 // enhanced

	byteOrder    = 0x1A2B3C4D
	linkEthernet = 1

	optionEnd       = 0
	optionComment   = 1
	optionFlags     = 2 // of a packet
	optionDropCount = 4 // of a packet
	optionName      = 2 // of an interface
	optionUnit      = 9 // of an interface's times
	optionProgram   = 4 // of a section

	flagInbound, flagOutbound = 1, 2
	nanoseconds               = 9 // as a power of ten
)

// Packet is a packet of a capture.
type Packet struct {
	Time    time.Time
	Out     bool   // sent, not received
	Frame   []byte // possibly truncated
	Length  int    // of the complete frame, in bytes
	Comment string
	Lost    uint64 // packets lost since the previous one
}

// Writer writes a capture, with one Write per block.
type Writer struct {
	to    io.Writer
	block []byte
}

// NewWriter starts a capture of an interface. Frames are truncated to snap bytes, unless snap is 0.
func NewWriter(to io.Writer, name, program string, snap int) (*Writer, error) {
	w := &Writer{to: to}
	w.begin(blockSection)
	w.numbers(byteOrder, 1, 0xFFFFFFFF, 0xFFFFFFFF) // version 1.0; unknown length
	w.option(optionProgram, []byte(program))
	if err := w.end(); err != nil {
		return nil, err
	}
	w.begin(blockInterface)
	w.numbers(linkEthernet, uint32(snap))
	w.option(optionName, []byte(name))
	w.option(optionUnit, []byte{nanoseconds})
	return w, w.end()
}

// Write writes a packet.
func (w *Writer) Write(p *Packet) error {
	at := uint64(p.Time.UnixNano())
	w.begin(blockPacket)
	w.numbers(0, uint32(at>>32), uint32(at), uint32(len(p.Frame)), uint32(p.Length))
	w.padded(p.Frame)
	direction := uint32(flagInbound)
	if p.Out {
		direction = flagOutbound
	}
	w.option(optionFlags, binary.LittleEndian.AppendUint32(nil, direction))
	w.option(optionComment, []byte(p.Comment))
	if p.Lost > 0 {
		w.option(optionDropCount, binary.LittleEndian.AppendUint64(nil, p.Lost))
	}
	return w.end()
}

// begin starts a block, whose length is not known yet.
func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.numbers(kind, 0)
}

// end completes the options and the block, and writes it.
func (w *Writer) end() error {
	w.option(optionEnd, nil)
	length := uint32(len(w.block) + 4)
	w.numbers(length)
	binary.LittleEndian.PutUint32(w.block[4:], length)
	_, err := w.to.Write(w.block)
	return err
}

func (w *Writer) numbers(all ...uint32) {
	for _, n := range all {
		w.block = binary.LittleEndian.AppendUint32(w.block, n)
	}
}

// padded appends bytes, padded with zeros to a multiple of 4.
func (w *Writer) padded(data []byte) {
	w.block = append(w.block, data...)
	w.block = append(w.block, make([]byte, -len(data)&3)...)
}

func (w *Writer) option(code uint16, value []byte) {
	w.block = binary.LittleEndian.AppendUint16(w.block, code)
	w.block = binary.LittleEndian.AppendUint16(w.block, uint16(len(value)))
	w.padded(value)
}
