// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// weakVersion is VER_FLG_WEAK of a required version: if the C library lacks the version, the loader continues without
// its symbols.
const weakVersion = 2

// weaken marks the versions that a library requires only for weak symbols. The linker does not mark them, so the
// library could not be loaded with an older C library.
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

// strongVersions returns the indices of the versions that non-weak symbols require.
func strongVersions(path string) (map[uint16]bool, error) {
	library, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer library.Close()
	if library.Class != elf.ELFCLASS64 || library.Data != elf.ELFDATA2LSB {
		return nil, errors.New("not a 64-bit little-endian library")
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
