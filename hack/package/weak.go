// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// weakVersion is VER_FLG_WEAK of a version that a library needs: if the C library lacks it, the loader continues
// without the symbols of that version.
const weakVersion = 2

// weaken marks the versions that a library needs only for weak symbols, which it may do without. The linker does not
// mark them, so that an older C library would refuse the library whole.
func weaken(path string) error {
	strong, err := strongVersions(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	library, err := elf.NewFile(file)
	if err != nil {
		return err
	}
	section := library.SectionByType(elf.SHT_GNU_VERNEED)
	needs, err := section.Data()
	if err != nil {
		return err
	}
	for need := 0; ; { // Elf64_Verneed, each with its list of Elf64_Vernaux: elf(5)
		next := binary.LittleEndian.Uint32(needs[need+12:])
		aux := need + int(binary.LittleEndian.Uint32(needs[need+8:]))
		for range binary.LittleEndian.Uint16(needs[need+2:]) {
			if index := binary.LittleEndian.Uint16(needs[aux+6:]); !strong[index] {
				binary.LittleEndian.PutUint16(needs[aux+4:], weakVersion)
			}
			aux += int(binary.LittleEndian.Uint32(needs[aux+12:]))
		}
		if next == 0 {
			break
		}
		need += int(next)
	}
	_, err = file.WriteAt(needs, int64(section.Offset))
	return err
}

// strongVersions are the numbers of the versions that symbols need which must be there.
func strongVersions(path string) (map[uint16]bool, error) {
	library, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer library.Close()
	if library.Class != elf.ELFCLASS64 || library.Data != elf.ELFDATA2LSB {
		return nil, errors.New("not a library of 64 bits, the least first")
	}
	symbols, err := library.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	strong := map[uint16]bool{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_WEAK && s.HasVersion {
			strong[s.VersionIndex.Index()] = true
		}
	}
	return strong, nil
}
