// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// The program writes the list of a fast region. Whatever it contains, the card registers only memory of the session, in
// the directions in which it is mapped.
func fastLists(t *testing.T, w *rig.World) {
	h := NewHandles(w.A, w.A.Session, 0)
	grant, err := provider.Do(w.A.Session, provider.AllocFastMR, provider.AllocFastMRRequest{PD: h.PD, Entries: 4})
	rig.Check(t, err)
	addr := func(d kernel.DMADirection) kernel.DMAAddr { return kernel.DMAMapSingle(w.A.Ctx, w.A.MR.Bytes(), d) }
	both, to, from := addr(kernel.DMABidirectional), addr(kernel.DMAToDevice), addr(kernel.DMAFromDevice)
	size := uint64(len(w.A.MR.Bytes()))
	foreign := kernel.DMAMapSingle(w.B.Ctx, w.B.MR.Bytes(), kernel.DMABidirectional)
	local, remote := verbs.AccessLocalWrite, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite
	for what, row := range map[string]struct {
		list   []listEntry
		change func(*provider.MapFMRRequest)
	}{
		"another session's memory":      {[]listEntry{{Addr: foreign, Length: 8}}, nil},
		"after own memory":              {[]listEntry{{Addr: both, Length: 8}, {Addr: both + kernel.DMAAddr(size), Length: 8}}, nil},
		"an end that wraps":             {[]listEntry{{Addr: both + 8, Length: math.MaxUint64 - 7}}, nil},
		"lengths whose sum wraps":       {[]listEntry{{Addr: both, Length: 16}, {Addr: both, Length: math.MaxUint64 - 7}}, nil},
		"an address that wraps":         {[]listEntry{{Addr: math.MaxUint64, Length: 8}}, nil},
		"the list's own memory":         {[]listEntry{{Addr: kernel.DMAAddr(grant.LKey>>8) << 38, Length: 8}}, nil},
		"more bytes than in the list":   {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Length = 1 << 40 }},
		"more entries than in the list": {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Count = 5 }},
		"2^32-1 entries":                {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Count = math.MaxUint32 }},
		"no entries":                    {nil, nil},
		"a base from which it wraps":    {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.IOVA = math.MaxUint64 - 6 }},
		"another region's key":          {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Key ^= 1 << 8 }},
		"to device, to be written":      {[]listEntry{{Addr: both, Length: 8}, {Addr: to, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Access = local }},
		"from device, to be read":       {[]listEntry{{Addr: from, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Access = remote }},
		"writing without a local write": {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Access = verbs.AccessRemoteWrite }},
		"unknown access flags":          {[]listEntry{{Addr: both, Length: 8}}, func(r *provider.MapFMRRequest) { r.Reg.Access = 1 << 31 }},
	} {
		r := provider.MapFMRRequest{MR: grant.MR, Key: verbs.RKey(grant.LKey)}
		r.Reg.Count = uint32(len(row.list))
		for i, e := range row.list {
			e.put(grant.Memory[16*i:])
			r.Reg.Length += e.Length
		}
		if row.change != nil {
			row.change(&r)
		}
		refuseAll(t, w, []command{{what, func() error { return provider.Exec(w.A.Session, provider.MapFMR, r) }}})
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		for i := range grant.Memory {
			grant.Memory[i] = byte(random.Uint32())
		}
		r := provider.MapFMRRequest{MR: grant.MR, Key: verbs.RKey(grant.LKey)}
		r.Reg.Count, r.Reg.Length = 1+random.Uint32N(4), random.Uint64()
		if provider.Exec(w.A.Session, provider.MapFMR, r) == nil {
			t.Fatalf("a random list was registered; seed %d", seed)
		}
	}
	rig.Check(t, provider.Exec(w.A.Session, provider.DeregMR, provider.DeregMRRequest{MR: grant.MR}))
	h.free(t, w.A.Session)
	w.Alive()
}

// listEntry is an entry of a list in memory.
type listEntry struct {
	Addr   kernel.DMAAddr
	Length uint64
}

func (e listEntry) put(at []byte) {
	binary.LittleEndian.PutUint64(at, uint64(e.Addr))
	binary.LittleEndian.PutUint64(at[8:], e.Length)
}

// The local DMA key gives access to memory of the session only, whether addresses are those of another session, similar
// to those, or random.
func othersMemory(t *testing.T, w *rig.World) {
	p := w.Connect(verbs.QPTypeRC, nil)
	foreign := kernel.DMAMapSingle(p.B.Ctx, p.B.MR.Bytes(), kernel.DMABidirectional)
	copy(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 3))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		addr := uint64(foreign)
		switch i % 4 {
		case 1:
			addr += uint64(random.IntN(rig.RegionLen))
		case 2:
			addr += uint64(random.IntN(512)-256) << 38
		case 3:
			addr = random.Uint64()
		}
		wr := p.A.Request(verbs.WRRDMARead, &p.B, 0)
		wr.SGList = []verbs.SGE{{Addr: addr, Length: 1 + random.Uint32N(4096), LKey: kernel.LocalDMALKey}}
		p.A.Post(wr)
		if got := p.A.Wait(1)[0].Status; got != verbs.WCLocProtErr {
			t.Fatalf("address %#x: %v; seed %d", addr, got, seed)
		}
		p.Again()
	}
	if !bytes.Equal(p.B.MR.Bytes(), rig.Pattern(rig.RegionLen, 3)) {
		t.Error("another session's memory was written")
	}
	w.Alive()
}
