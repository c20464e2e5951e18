// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"bytes"
	"math"
	"testing"
)

// symmetric tries a body as the request or as the grant of its command: an accepted one is encoded as it was.
func symmetric(t *testing.T, m Message) {
	c, found := ByNumber(m.Code)
	if !found {
		return
	}
	switch m.Kind {
	case Request:
		if r, err := c.DecodeRequest(m.Body); err == nil {
			packet, err := c.EncodeRequest(m.ID, r)
			same(t, m, packet, err)
		}
	case Reply:
		g := c.NewGrant()
		if err := c.DecodeGrant(m.Body, shared, g); err == nil {
			packet, err := c.EncodeGrant(m.ID, g, shared)
			same(t, m, packet, err)
		}
	}
}

func same(t *testing.T, m Message, packet []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(packet[headerLen:], m.Body) {
		t.Errorf("%v: %x, was %x", err, packet, m.Body)
	}
}

// Whatever comes from the other side, either way, is refused or understood; what is understood is
// written as it was read.
func FuzzMessage(f *testing.F) {
	for _, d := range all {
		for kind, fields := range map[Kind][]field{Request: fieldsOf(d.request, d.newRequest()), Reply: fieldsOf(d.grant, d.newGrant())} {
			s := structure{fields: fields}
			f.Add(append([]byte{byte(d.Number), byte(d.Number >> 8), byte(kind), 0, 1, 0, 0, 0}, make([]byte, s.size())...))
		}
	}
	for _, seed := range memorySeeds(f) {
		f.Add(seed)
	}
	f.Add(EncodeCancel(1, Canceled))
	f.Add(EncodeFailure(Ended, 0, 0, ErrMalformed))
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := Parse(packet)
		if err != nil {
			return
		}
		switch m.Kind {
		case Cancel:
			if reason, err := DecodeCancel(m.Body); err == nil {
				same(t, m, EncodeCancel(m.ID, reason), nil)
			}
		case Failure, Ended:
			if cause, err := DecodeFailure(m.Body); err == nil && cause.Error() == "" && len(m.Body) > headerLen+32 {
				t.Errorf("no text in %x", m.Body)
			}
		default:
			symmetric(t, m)
		}
	})
}

// memorySeeds are requests for parts of a process file, at its edges and beyond.
func memorySeeds(f *testing.F) (seeds [][]byte) {
	for _, offset := range []uint64{0, 4095, MaxProcessFile - 1, MaxProcessFile, math.MaxUint64} {
		for _, length := range []int{0, 1, 1 << 30, math.MaxInt64, -1, math.MinInt64} {
			reg, err := RegMR.EncodeRequest(1, &RegMRRequest{PD: 1, Access: 7, Length: length, IOVA: offset, Offset: offset})
			if err != nil {
				f.Fatal(err)
			}
			rereg, err := ReregMRMemory.EncodeRequest(1, &ReregMRMemoryRequest{MR: 1, Flags: 7, PD: 1, Length: length, Offset: offset})
			if err != nil {
				f.Fatal(err)
			}
			seeds = append(seeds, reg, rereg)
		}
	}
	return seeds
}
