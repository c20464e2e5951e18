// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Place is the location of data in the memory that both sides share.
type Place struct{ Offset, Length uint64 } // bytes

// Memory translates between places and memory as mapped by one side.
type Memory interface {
	// PlaceOf returns the place of memory that the service has granted.
	PlaceOf(memory []byte) (Place, error)
	// At returns the memory at a place.
	At(Place) ([]byte, error)
}

type direction uint8

const (
	encoding direction = iota
	decoding
	describing
)

// coder visits the fields of a structure in their order in memory. It appends them to buffer, or removes them from it,
// or lists them. After an error it does nothing.
type coder struct {
	direction
	buffer []byte // encoding: so far; decoding: the rest
	memory Memory
	fields []field
	at     int // describing
	err    error
}

// field is a field of a structure, for the C header.
type field struct {
	name   string
	offset int
	size   int    // of one element
	count  int    // elements; 0 for a field that is not an array, -1 for the number stated in the structure
	kind   string // in C; of a list's entries the name, or uint8_t
	entry  []field
	part   []field // of a structure that is a part of this one
}

func (c *coder) fail(format string, arguments ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, arguments...)...)
	}
}

// take returns the next bytes to be decoded; nil after an error.
func (c *coder) take(name string, n int) []byte {
	if c.err != nil {
		return nil
	}
	if len(c.buffer) < n {
		c.fail("it ends before %s", name)
		return nil
	}
	piece := c.buffer[:n:n]
	c.buffer = c.buffer[n:]
	return piece
}

func (c *coder) describe(name, kind string, size, count int) {
	c.fields = append(c.fields, field{name: name, offset: c.at, size: size, count: count, kind: kind})
	c.at += size * max(count, 1)
}

// number visits an unsigned number of size bytes.
func (c *coder) number(name string, size int, value uint64) uint64 {
	switch c.direction {
	case describing:
		c.describe(name, fmt.Sprintf("uint%d_t", 8*size), size, 0)
	case encoding:
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], value)
		c.buffer = append(c.buffer, raw[:size]...)
	case decoding:
		var raw [8]byte
		copy(raw[:], c.take(name, size))
		return binary.LittleEndian.Uint64(raw[:])
	}
	return value
}

func u8[T ~uint8](c *coder, name string, v *T)   { *v = T(c.number(name, 1, uint64(*v))) }
func u16[T ~uint16](c *coder, name string, v *T) { *v = T(c.number(name, 2, uint64(*v))) }
func u32[T ~uint32](c *coder, name string, v *T) { *v = T(c.number(name, 4, uint64(*v))) }
func u64[T ~uint64](c *coder, name string, v *T) { *v = T(c.number(name, 8, uint64(*v))) }

// whole visits an int, which may be negative.
func (c *coder) whole(name string, v *int) {
	if c.direction == describing {
		c.describe(name, "int64_t", 8, 0)
		return
	}
	*v = int(int64(c.number(name, 8, uint64(*v))))
}

// i32 visits a signed number.
func i32(c *coder, name string, v *int32) {
	raw := uint32(*v)
	u32(c, name, &raw)
	if c.direction == describing {
		c.fields[len(c.fields)-1].kind = "int32_t"
	}
	*v = int32(raw)
}

// flag visits a byte that is 0 or 1.
func (c *coder) flag(name string, v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	if u8(c, name, &b); b > 1 {
		c.fail("%s is %d, neither 0 nor 1", name, b)
	}
	*v = b == 1
}

// raw visits unformatted bytes.
func (c *coder) raw(name string, v []byte) {
	switch c.direction {
	case describing:
		c.describe(name, "uint8_t", 1, len(v))
	case encoding:
		c.buffer = append(c.buffer, v...)
	case decoding:
		copy(v, c.take(name, len(v)))
	}
}

// text visits a string in size bytes. It is padded with zeros, at least one.
func (c *coder) text(name string, size int, v *string) {
	switch c.direction {
	case describing:
		c.describe(name, "char", 1, size)
	case encoding:
		if len(*v) >= size || strings.IndexByte(*v, 0) >= 0 {
			c.fail("%s %q has more than %d bytes, or a zero", name, *v, size-1)
		}
		c.buffer = append(append(c.buffer, *v...), make([]byte, max(size-len(*v), 0))...)
	case decoding:
		raw := string(c.take(name, size))
		text := strings.TrimRight(raw, "\x00")
		if c.err == nil && (len(text) == size || strings.IndexByte(text, 0) >= 0) {
			c.fail("%s does not end with zeros", name)
		}
		*v = text
	}
}

// clipped is text that is cut if it is too long, for text that only users read.
func (c *coder) clipped(name string, size int, v *string) {
	if c.direction == encoding {
		text := clip(*v, size-1)
		v = &text
	}
	c.text(name, size, v)
}

// clip cuts a text to at most that many bytes, without zeros, at the end of a character.
func clip(text string, most int) string {
	text = strings.ReplaceAll(text, "\x00", " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// reserved visits bytes that are 0.
func (c *coder) reserved(size int) {
	name := fmt.Sprintf("reserved%d", c.at)
	switch c.direction {
	case describing:
		c.describe(name, "uint8_t", 1, size)
	case encoding:
		c.buffer = append(c.buffer, make([]byte, size)...)
	case decoding:
		for _, b := range c.take("reserved bytes", size) {
			if b != 0 {
				c.fail("reserved bytes are not 0")
			}
		}
	}
}

// shared visits memory, by its place. nil has length and offset 0.
func (c *coder) shared(name string, v *[]byte) {
	var p Place
	if c.direction == encoding && c.err == nil && len(*v) > 0 {
		p, c.err = c.memory.PlaceOf(*v)
	}
	c.place(name, &p)
	if c.direction != decoding || c.err != nil {
		return
	}
	*v = nil
	switch {
	case p.Length != 0:
		*v, c.err = c.memory.At(p)
	case p.Offset != 0:
		c.fail("%s has no bytes, and lies at %d", name, p.Offset)
	}
}

func (c *coder) place(name string, p *Place) { part(c, name, "place", p, visitPlace) }

func visitPlace(c *coder, p *Place) {
	u64(c, "offset", &p.Offset)
	u64(c, "length", &p.Length)
}

// part visits a part that is a structure of its own in C, of a kind: struct roced_KIND. On the wire its fields follow those
// before it.
func part[T any](c *coder, name, kind string, v *T, visit func(*coder, *T)) {
	if c.direction != describing {
		visit(c, v)
		return
	}
	inner := &coder{direction: describing}
	visit(inner, v)
	c.fields = append(c.fields, field{name: name, offset: c.at, size: inner.at, kind: kind, part: inner.fields})
	c.at += inner.at
}

// list visits at most the given number of entries of one structure: their number, followed by the entries. It is the
// last field of a structure.
func list[T any](c *coder, name string, most int, v *[]T, visit func(*coder, *T)) {
	count := uint32(len(*v))
	u32(c, name+"_count", &count)
	c.reserved(4)
	if int64(count) > int64(most) {
		c.fail("%d %s, at most %d", count, name, most)
		return
	}
	switch c.direction {
	case describing:
		var entry T
		inner := &coder{direction: describing}
		visit(inner, &entry)
		f := field{name: name, offset: c.at, size: inner.at, count: -1, kind: inner.fields[0].kind, entry: inner.fields}
		if inner.at == 1 { // bytes
			f.entry = nil
		}
		c.fields = append(c.fields, f)
		return
	case decoding:
		*v = make([]T, 0, min(int(count), len(c.buffer)))
		for range count {
			*v = append(*v, *new(T))
		}
	}
	for i := range *v {
		if c.err != nil {
			return
		}
		visit(c, &(*v)[i])
	}
}
