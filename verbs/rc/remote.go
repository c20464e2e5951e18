package rc

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roced/roced/verbs"
)

// RemoteRegion is a peer's region, or a part of one: a handle, which Region.Remote gives, and which travels as
// bytes or as text. It is comparable. Who has it can use the memory over a connection of the region's domain,
// as far as the region allows; it is no secret that keeps others out (RoCEv2 has no encryption).
//
//	0x0+4096,rkey=0x89abcdef    its text
type RemoteRegion struct {
	Addr   uint64 // as the peer's card knows it
	Length uint32 // bytes
	Key    verbs.RKey
}

// RemoteRegionLen is how many bytes MarshalBinary gives.
const RemoteRegionLen = 16

// Slice is a part of the memory.
func (r RemoteRegion) Slice(offset, length int) (RemoteRegion, error) {
	if err := r.check(offset, length); err != nil {
		return RemoteRegion{}, err
	}
	return RemoteRegion{r.Addr + uint64(offset), uint32(length), r.Key}, nil
}

// check refuses what does not lie in the memory.
func (r *RemoteRegion) check(offset, length int) error {
	if offset < 0 || length < 0 || uint64(offset)+uint64(length) > uint64(r.Length) {
		return fmt.Errorf("%w: %d bytes at offset %d, of %d bytes", ErrOutside, length, offset, r.Length)
	}
	return nil
}

// String is the handle's text, which ParseRemoteRegion reads.
func (r RemoteRegion) String() string {
	return fmt.Sprintf("0x%x+%d%s0x%08x", r.Addr, r.Length, keyMark, uint32(r.Key))
}

// keyMark stands before the key in a handle's text.
const keyMark = ",rkey="

// ParseRemoteRegion reads the text of a handle. Numbers may be decimal or hexadecimal.
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
			return RemoteRegion{}, notRemote(text, fmt.Sprintf("%q is no %s of %d bits", part.text, part.what, part.bits))
		}
	}
	r := RemoteRegion{numbers[0], uint32(numbers[1]), verbs.RKey(numbers[2])}
	if r.wraps() {
		return RemoteRegion{}, notRemote(text, "it reaches beyond 2^64")
	}
	return r, nil
}

func notRemote(text, why string) error {
	return fmt.Errorf("handle of memory %q: %w: %s; 0x0+4096,rkey=0x89abcdef is one", text, verbs.ErrInvalid, why)
}

// wraps says that the memory would reach beyond the last address.
func (r *RemoteRegion) wraps() bool { return r.Addr > math.MaxUint64-uint64(r.Length) }

// MarshalText gives the handle's text.
func (r RemoteRegion) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the handle's text.
func (r *RemoteRegion) UnmarshalText(text []byte) (err error) {
	if r == nil {
		return fmt.Errorf("read a handle of memory: %w", errNil)
	}
	*r, err = ParseRemoteRegion(string(text))
	return err
}

// MarshalBinary gives the handle as RemoteRegionLen bytes: address, key, length, each with the highest byte first
// (as rping has them).
func (r RemoteRegion) MarshalBinary() ([]byte, error) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, RemoteRegionLen), r.Addr)
	b = binary.BigEndian.AppendUint32(b, uint32(r.Key))
	return binary.BigEndian.AppendUint32(b, r.Length), nil
}

// UnmarshalBinary reads what MarshalBinary gives.
func (r *RemoteRegion) UnmarshalBinary(b []byte) error {
	if r == nil {
		return fmt.Errorf("read a handle of memory: %w", errNil)
	}
	if len(b) != RemoteRegionLen {
		return fmt.Errorf("handle of memory: %w: %d bytes, not %d", verbs.ErrInvalid, len(b), RemoteRegionLen)
	}
	read := RemoteRegion{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[12:]), verbs.RKey(binary.BigEndian.Uint32(b[8:]))}
	if read.wraps() {
		return fmt.Errorf("handle of memory: %w: %d bytes at 0x%x reach beyond 2^64", verbs.ErrInvalid, read.Length, read.Addr)
	}
	*r = read
	return nil
}
