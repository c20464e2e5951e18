package kernel

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/roced/roced/ib"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// DMAAddr is an address of the session's memory for the card (dma_addr_t). An SGE with it has LocalDMALKey. It says
// in which direction the memory is mapped, and the card keeps to that: what is mapped DMAToDevice it never
// writes, what is mapped DMAFromDevice it never reads.
//
// There is no bus, and nothing is moved: a mapping is a name for memory, costs no command, and stays good until the memory
// is freed. What can be mapped is memory that the session shares with its card, of AllocMR and DMAAllocCoherent.
type DMAAddr = ib.DMAAddr

// LocalDMALKey is the key with which mapped addresses go, of any region of the session and in every PD
// (local_dma_lkey). It is no key for peers.
const LocalDMALKey = ib.LocalDMALKey

// Addresses that no memory has: why it could not be mapped.
const (
	dmaForeign   DMAAddr = math.MaxUint64 - iota // not of the session
	dmaEmpty                                     // no bytes
	dmaDirection                                 // no direction
	dmaPage                                      // beyond the page
)

var dmaErrors = map[DMAAddr]error{
	dmaForeign:   fmt.Errorf("DMA mapping: %w: the memory is not the session's; AllocMR and DMAAllocCoherent make memory that the card can access", verbs.ErrUnsupported),
	dmaEmpty:     fmt.Errorf("DMA mapping: %w: no bytes", verbs.ErrInvalid),
	dmaDirection: fmt.Errorf("DMA mapping: %w: there are DMABidirectional, DMAToDevice and DMAFromDevice", verbs.ErrInvalid),
	dmaPage:      fmt.Errorf("DMA mapping: %w: the bytes are not all of the page", verbs.ErrInvalid),
}

// DMAMappingError says why an address is none, nil if it is one (ib_dma_mapping_error).
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

// DMAMapSingle maps memory (ib_dma_map_single). DMAMappingError says whether it could.
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

// DMAUnmapSingle ends a mapping of DMAMapSingle (ib_dma_unmap_single). It orders memory, as DMASyncSingleForCPU does, and
// there is nothing else to do.
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

	addr   DMAAddr // when it is mapped
	length int     // likewise
}

// DMAMapSG maps the entries of a list (ib_dma_map_sg): all of them, or none. It returns how many it has mapped.
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

// DMAUnmapSG ends the mappings of DMAMapSG (ib_dma_unmap_sg). The entries have no addresses any more.
func DMAUnmapSG(c *verbs.Context, list []SG, d DMADirection) {
	for i := range list {
		list[i].addr, list[i].length = 0, 0
	}
	order()
}

// SGDMAAddress is where an entry is mapped (ib_sg_dma_address); 0 if it is not.
func SGDMAAddress(c *verbs.Context, sg *SG) DMAAddr {
	if sg == nil {
		return 0
	}
	return sg.addr
}

// SGDMALen is how many bytes of an entry are mapped (ib_sg_dma_len).
func SGDMALen(c *verbs.Context, sg *SG) int {
	if sg == nil {
		return 0
	}
	return sg.length
}

// DMASyncSingleForCPU has the program see what the card wrote (ib_dma_sync_single_for_cpu): it orders memory, and moves
// nothing. A program that has polled a completion sees what is completed without it.
func DMASyncSingleForCPU(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// DMASyncSingleForDevice has the card see what the program wrote (ib_dma_sync_single_for_device): it orders memory,
// and moves nothing. Posting a request does so too.
func DMASyncSingleForDevice(c *verbs.Context, addr DMAAddr, size int, d DMADirection) { order() }

// order is a full memory barrier: a store and a load of one word. An atomic addition is none on arm64 without LSE, where
// accesses before it and behind it meet between its load and its store (TestLitmusOrder).
func order() {
	ordered.Store(0)
	ordered.Load()
}

var ordered atomic.Uint32

// DMAAllocCoherent makes zeroed memory that is mapped in both directions (ib_dma_alloc_coherent). It counts as a region
// in limits.
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

// DMAFreeCoherent frees memory of DMAAllocCoherent (ib_dma_free_coherent). ErrBusy while a fast region is registered of it.
func DMAFreeCoherent(c *verbs.Context, memory []byte, addr DMAAddr) error {
	if c == nil {
		return fmt.Errorf("free coherent memory: %w", errNil)
	}
	mr := in.Coherent(c, addr.Key())
	if mr == nil || addr.Offset() != 0 || len(memory) == 0 || &memory[0] != &mr.Bytes()[0] {
		return fmt.Errorf("free coherent memory: %w: it is not what DMAAllocCoherent gave", verbs.ErrInvalid)
	}
	return mr.Close()
}
