// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"

	"github.com/roced/roced/verbs/hca/quota"
)

// pageTables are the page tables that the kernel makes for a window. It frees them when the window is unmapped, not when a region
// is deregistered or its pages are taken out of the file. A program decides which pages of a window it registers one after
// the other, so each page table counts as memory of its user, from the first region in it until the window is unmapped.
type pageTables struct {
	start   uint64 // of the window, from the first byte that the first page table maps
	charged []bool // by page table of the lowest level
	bytes   uint64
}

// TableSpan returns the number of bytes that one page table of the lowest level maps: it is a page of entries of 8 bytes.
func TableSpan() uint64 { return uint64(pageSize) * uint64(pageSize) / 8 }

func newPageTables(memory []byte) pageTables {
	start := uint64(reflect.ValueOf(memory).Pointer()) % TableSpan()
	return pageTables{start: start, charged: make([]bool, (start+uint64(len(memory))-1)/TableSpan()+1)}
}

// charge charges the page tables of a part of the window, and with the first one a table of the next level.
func (t *pageTables) charge(to *quota.Quota, offset, size uint64) error {
	first, last := (t.start+offset)/TableSpan(), (t.start+offset+size-1)/TableSpan()
	part := t.charged[first : last+1]
	more := uint64(0)
	if t.bytes == 0 {
		more += uint64(pageSize)
	}
	for _, is := range part {
		if !is {
			more += uint64(pageSize)
		}
	}
	if more == 0 {
		return nil
	}
	if err := to.TakeMemory(more); err != nil {
		return fmt.Errorf("page tables of the service, of which regions that lie apart take one for each %d bytes: %w", TableSpan(), err)
	}
	for i := range part {
		part[i] = true
	}
	t.bytes += more
	return nil
}

// release ends the charge: the window is unmapped.
func (t *pageTables) release(of *quota.Quota) {
	of.GiveMemory(t.bytes)
	t.bytes = 0
}
