// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// DMAAddr is an address of the session's memory for the card (dma_addr_t). An SGE with it uses LocalDMALKey. It
// contains the direction of the mapping, which the card enforces: it never writes memory that is mapped DMAToDevice,
// and never reads memory that is mapped DMAFromDevice.
//
// There is no bus, and no data is copied: a mapping is an address, costs no command, and is valid until the memory is
// freed. Memory that the session shares with its card can be mapped: that of AllocMR and DMAAllocCoherent.
type DMAAddr = ib.DMAAddr

// LocalDMALKey is the key of SGEs with mapped addresses, for any region of the session and in every PD (local_dma_lkey).
// Peers cannot use it.
const LocalDMALKey = ib.LocalDMALKey

// Invalid addresses, each for one reason why memory was not mapped.
const (
	dmaForeign   DMAAddr = math.MaxUint64 - iota // not memory of the session
	dmaEmpty                                     // no bytes
	dmaDirection                                 // invalid direction
	dmaPage                                      // beyond the page
)

var dmaErrors = map[DMAAddr]error{
	dmaForeign:   fmt.Errorf("DMA mapping: %w: the memory does not belong to the session; AllocMR and DMAAllocCoherent allocate memory that the card can access", verbs.ErrUnsupported),
	dmaEmpty:     fmt.Errorf("DMA mapping: %w: the length is 0", verbs.ErrInvalid),
	dmaDirection: fmt.Errorf("DMA mapping: %w: the direction must be DMABidirectional, DMAToDevice or DMAFromDevice", verbs.ErrInvalid),
	dmaPage:      fmt.Errorf("DMA mapping: %w: the bytes exceed the page", verbs.ErrInvalid),
}

// DMAMappingError returns the reason why memory was not mapped, or nil for a valid address (ib_dma_mapping_error).
func DMAMappingError(c *verbs.Context, addr DMAAddr) error {
	if c == nil {
		return fmt.Errorf("DMA mapping: %w", errNil)
	}
	if err := dmaErrors[addr]; err != nil {
		return err
	}
	if addr.Direction() == DMANone {
		return dmaErrors[dmaDirection]
	}
	return nil
}

// DMAMapSingle maps memory (ib_dma_map_single). DMAMappingError reports whether that failed.
func DMAMapSingle(c *verbs.Context, memory []byte, d DMADirection) DMAAddr {
	switch {
	case c == nil:
		return dmaForeign
	case len(memory) == 0:
		return dmaEmpty
	case d >= DMANone:
		return dmaDirection
	}
	key, offset, ok := in.FindMemory(c, memory)
	if !ok {
		return dmaForeign
	}
	order()
	return ib.NewDMAAddr(key, offset, d)
}

// DMAUnmapSingle ends a mapping of DMAMapSingle (ib_dma_unmap_single). It only orders memory, as
// DMASyncSingleForCPU does.
func DMAUnmapSingle(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// DMAMapPage maps a part of a page (ib_dma_map_page).
func DMAMapPage(c *verbs.Context, page []byte, offset, size int, d DMADirection) DMAAddr {
	if offset < 0 || size < 0 || offset > len(page) || size > len(page)-offset {
		return dmaPage
	}
	return DMAMapSingle(c, page[offset:][:size], d)
}

// DMAUnmapPage ends a mapping of DMAMapPage (ib_dma_unmap_page); see DMAUnmapSingle.
func DMAUnmapPage(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// SG is an entry of a scatter/gather list of memory (struct scatterlist).
type SG struct {
	Memory []byte

	addr   DMAAddr // set when it is mapped
	length int     // set when it is mapped
}

// DMAMapSG maps the entries of a list (ib_dma_map_sg) and returns their number; 0 if one of them cannot be mapped.
func DMAMapSG(c *verbs.Context, list []SG, d DMADirection) int {
	for i := range list {
		sg := &list[i]
		addr := DMAMapSingle(c, sg.Memory, d)
		if DMAMappingError(c, addr) != nil {
			DMAUnmapSG(c, list[:i], d)
			return 0
		}
		sg.addr, sg.length = addr, len(sg.Memory)
	}
	return len(list)
}

// DMAUnmapSG ends the mappings of DMAMapSG (ib_dma_unmap_sg). Afterwards the entries have no addresses.
func DMAUnmapSG(c *verbs.Context, list []SG, d DMADirection) {
	for i := range list {
		list[i].addr, list[i].length = 0, 0
	}
	order()
}

// SGDMAAddress returns the address of a mapped entry, or 0 (ib_sg_dma_address).
func SGDMAAddress(c *verbs.Context, sg *SG) DMAAddr {
	if sg == nil {
		return 0
	}
	return sg.addr
}

// SGDMALen returns the number of mapped bytes of an entry (ib_sg_dma_len).
func SGDMALen(c *verbs.Context, sg *SG) int {
	if sg == nil {
		return 0
	}
	return sg.length
}

// DMASyncSingleForCPU makes the card's writes visible to the program (ib_dma_sync_single_for_cpu): it orders memory and
// copies nothing. After a program has polled a completion, the completed data is visible without it.
func DMASyncSingleForCPU(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// DMASyncSingleForDevice makes the program's writes visible to the card (ib_dma_sync_single_for_device): it orders memory
// and copies nothing. Posting a request does so too.
func DMASyncSingleForDevice(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// order is a full memory barrier: a store and a load of one word. An atomic addition is not a barrier on arm64 without
// LSE, where accesses before and after it can be reordered between its load and its store (TestLitmusOrder).
func order() {
	ordered.Store(0)
	ordered.Load()
}

var ordered atomic.Uint32

// DMAAllocCoherent allocates zeroed memory that is mapped in both directions (ib_dma_alloc_coherent). It counts as a
// memory region towards limits.
func DMAAllocCoherent(c *verbs.Context, size int) ([]byte, DMAAddr, error) {
	if c == nil {
		return nil, 0, fmt.Errorf("allocate coherent memory: %w", errNil)
	}
	grant, err := provider.Do(in.Provider(c), provider.AllocCoherent, provider.AllocCoherentRequest{Length: size})
	if err != nil {
		return nil, 0, fmt.Errorf("allocate coherent memory: %w", err)
	}
	in.AddCoherent(c, grant)
	return grant.Memory, ib.NewDMAAddr(grant.LKey, 0, DMABidirectional), nil
}

// DMAFreeCoherent frees memory of DMAAllocCoherent (ib_dma_free_coherent). ErrBusy while a fast region of it is
// registered.
func DMAFreeCoherent(c *verbs.Context, memory []byte, addr DMAAddr) error {
	if c == nil {
		return fmt.Errorf("free coherent memory: %w", errNil)
	}
	mr := in.Coherent(c, addr.Key())
	if mr == nil || addr.Offset() != 0 || len(memory) == 0 || &memory[0] != &mr.Bytes()[0] {
		return fmt.Errorf("free coherent memory: %w: the memory and the address are not those of DMAAllocCoherent", verbs.ErrInvalid)
	}
	return mr.Close()
}
