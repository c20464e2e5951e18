// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// newProgram writes a program that contains only the name of its loader.
func newProgram(t *testing.T, loader string) string {
	t.Helper()
	const headers = 64 + 56 // of the file, and of one segment
	var b bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_DYN),
			Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headers, Filesz: uint64(len(loader)), Memsz: uint64(len(loader))},
		[]byte(loader),
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return write(t, b.String())
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsesMusl(t *testing.T) {
	t.Parallel()
	musl, glibc := newProgram(t, "/lib/ld-musl-x86_64.so.1\x00"), newProgram(t, "/lib64/ld-linux-x86-64.so.2\x00")
	for name, row := range map[string]struct {
		program string
		want    bool
	}{
		"musl":            {musl, true},
		"glibc":           {glibc, false},
		"script of musl":  {write(t, "#! "+musl+" -e\n"), true},
		"script of glibc": {write(t, "#!"+glibc+"\n"), false},
		"no interpreter":  {write(t, "#!\n"), false},
		"text":            {write(t, "text"), false},
		"nothing":         {"/nowhere", false},
	} {
		if got := UsesMusl(row.program); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
