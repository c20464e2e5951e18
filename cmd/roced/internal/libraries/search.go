package libraries

import (
	"bufio"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Names are the files that a program loads.
var Names = []string{"libibverbs.so.1", "librdmacm.so.1"}

// muslFolder has those for programs that are linked with musl. They have the same names.
const muslFolder = "musl"

// Musl gives the folder of the libraries for musl, below that of those for glibc.
func Musl(folder string) string { return filepath.Join(folder, muslFolder) }

// SearchPath is the value of LD_LIBRARY_PATH by which each loader finds its own libraries. A loader fails at a library
// of the other kind and looks no further, so the first one that it finds has to be the right one. glibc's takes both ;
// and : between folders (ld.so(8)), and finds the first folder first. musl's takes only :, and finds the last one: what
// comes before is to it one folder that is not there.
func SearchPath(folder string) string { return folder + ";" + folder + ":" + Musl(folder) }

// UsesMusl says whether musl's loader loads a program, or the program that a script names in its first line.
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

// scriptInterpreter is the program that runs a script; empty if it is none.
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
