// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roced/roced/verbs"
)

// RemoteRegion is a handle of a peer's region, or of a part of it. Region.Remote returns it, and programs send it to
// their peers as bytes or as text. It is comparable. A program that has the handle can access the memory over a
// connection of the region's domain, within the access that the region permits. The handle does not protect the memory:
// RoCEv2 has no encryption.
//
//	0x0+4096,rkey=0x89abcdef    its text
type RemoteRegion struct {
	Addr   uint64 // address of the memory for the peer's card
	Length uint32 // length, in bytes
	Key    verbs.RKey
}

// RemoteRegionLen is the length of the result of MarshalBinary, in bytes.
const RemoteRegionLen = 16

// Slice returns a handle of a part of the memory; ErrOutside if the part is not in the memory.
func (r RemoteRegion) Slice(offset, length int) (RemoteRegion, error) {
	if err := r.check(offset, length); err != nil {
		return RemoteRegion{}, err
	}
	return RemoteRegion{r.Addr + uint64(offset), uint32(length), r.Key}, nil
}

// check checks that a range is in the memory.
func (r *RemoteRegion) check(offset, length int) error {
	if offset < 0 || length < 0 || uint64(offset)+uint64(length) > uint64(r.Length) {
		return fmt.Errorf("%w: %d bytes at offset %d exceed the length of %d bytes", ErrOutside, length, offset, r.Length)
	}
	return nil
}

// String returns the handle's text, which ParseRemoteRegion parses.
func (r RemoteRegion) String() string {
	return fmt.Sprintf("0x%x+%d%s0x%08x", r.Addr, r.Length, keyMark, uint32(r.Key))
}

// keyMark precedes the key in a handle's text.
const keyMark = ",rkey="

// ParseRemoteRegion parses the text of a handle. Numbers may be decimal or hexadecimal.
func ParseRemoteRegion(text string) (RemoteRegion, error) {
	place, key, hasKey := strings.Cut(text, keyMark)
	addr, length, hasLength := strings.Cut(place, "+")
	if !hasKey || !hasLength {
		return RemoteRegion{}, notRemote(text, "a part is missing")
	}
	var numbers [3]uint64
	for i, part := range []struct {
		what, text string
		bits       int
	}{{"address", addr, 64}, {"length", length, 32}, {"key", key, 32}} {
		var err error
		if numbers[i], err = strconv.ParseUint(part.text, 0, part.bits); err != nil {
			return RemoteRegion{}, notRemote(text, fmt.Sprintf("%q is not a %s of %d bits", part.text, part.what, part.bits))
		}
	}
	r := RemoteRegion{numbers[0], uint32(numbers[1]), verbs.RKey(numbers[2])}
	if r.wraps() {
		return RemoteRegion{}, notRemote(text, "it exceeds 2^64")
	}
	return r, nil
}

func notRemote(text, why string) error {
	return fmt.Errorf("handle of memory %q: %w: %s; example: 0x0+4096,rkey=0x89abcdef", text, verbs.ErrInvalid, why)
}

// wraps reports whether the memory would exceed the last address.
func (r *RemoteRegion) wraps() bool { return r.Addr > math.MaxUint64-uint64(r.Length) }

// MarshalText returns the handle's text.
func (r RemoteRegion) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the handle's text.
func (r *RemoteRegion) UnmarshalText(text []byte) (err error) {
	if r == nil {
		return fmt.Errorf("read a handle of memory: %w", errNil)
	}
	*r, err = ParseRemoteRegion(string(text))
	return err
}

// MarshalBinary returns the handle as RemoteRegionLen bytes: address, key and length in big-endian order (as in rping).
func (r RemoteRegion) MarshalBinary() ([]byte, error) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, RemoteRegionLen), r.Addr)
	b = binary.BigEndian.AppendUint32(b, uint32(r.Key))
	return binary.BigEndian.AppendUint32(b, r.Length), nil
}

// UnmarshalBinary parses the result of MarshalBinary.
func (r *RemoteRegion) UnmarshalBinary(b []byte) error {
	if r == nil {
		return fmt.Errorf("read a handle of memory: %w", errNil)
	}
	if len(b) != RemoteRegionLen {
		return fmt.Errorf("handle of memory: %w: %d bytes, not %d", verbs.ErrInvalid, len(b), RemoteRegionLen)
	}
	read := RemoteRegion{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[12:]), verbs.RKey(binary.BigEndian.Uint32(b[8:]))}
	if read.wraps() {
		return fmt.Errorf("handle of memory: %w: %d bytes at 0x%x exceed 2^64", verbs.ErrInvalid, read.Length, read.Addr)
	}
	*r = read
	return nil
}
