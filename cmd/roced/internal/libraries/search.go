// SPDX-License-Identifier: Apache-2.0

package libraries

import (
	"bufio"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Names lists the libraries.
var Names = []string{"libibverbs.so.1", "librdmacm.so.1"}

// muslFolder is the subdirectory of the libraries for musl, which have the same names.
const muslFolder = "musl"

// Musl returns the directory of the libraries for musl, below that of those for glibc.
func Musl(folder string) string { return filepath.Join(folder, muslFolder) }

// SearchPath returns a value of LD_LIBRARY_PATH with which each loader finds its own libraries. A loader
// fails at a library of the other kind instead of continuing, so it must find the right one first. The glibc
// loader accepts ; and : as separators (ld.so(8)) and searches the first directory first. The musl loader
// accepts only : and treats the text before it as one nonexistent directory.
func SearchPath(folder string) string { return folder + ";" + folder + ":" + Musl(folder) }

// UsesMusl reports whether the musl loader loads a program, or the interpreter of a script.
func UsesMusl(program string) bool {
	if named := scriptInterpreter(program); named != "" {
		program = named
	}
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(segment.Open())
			return err == nil && strings.Contains(string(loader), "ld-musl")
		}
	}
	return false
}

// scriptInterpreter returns the interpreter of a script, or "".
func scriptInterpreter(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n') // the kernel reads no more
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	return words[0]
}
