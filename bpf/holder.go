// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
)

// holder is a process that holds a bpf_link of a program.
type holder struct {
	pid     int
	command string // as ps shows it
	tag     string // of the program, in hexadecimal
}

// findHolders finds the processes that hold a bpf_link of a program. It reads the fdinfo of all
// processes that the caller may inspect: those of its own user, or with CAP_SYS_PTRACE all.
func findHolders(id ebpf.ProgramID) (holders []holder) {
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // the only error is a bad pattern
	for _, path := range infos {
		fields := strings.Split(path, "/")
		pid, err := strconv.Atoi(fields[2])
		if err != nil || slices.ContainsFunc(holders, func(h holder) bool { return h.pid == pid }) {
			continue
		}
		if tag, ok := linkedProgram(path, id); ok {
			command, _ := os.ReadFile(filepath.Join("/proc", fields[2], "comm"))
			holders = append(holders, holder{pid: pid, command: strings.TrimSpace(string(command)), tag: tag})
		}
	}
	return holders
}

// linkedProgram reports whether a descriptor is a bpf_link of the program, and returns the
// program's tag. A file that has gone meanwhile is not.
func linkedProgram(fdinfo string, id ebpf.ProgramID) (tag string, ok bool) {
	text, err := os.ReadFile(fdinfo)
	if err != nil || !bytes.Contains(text, []byte("link_type:")) {
		return "", false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); key {
		case "prog_tag":
			tag = value
		case "prog_id":
			ok = value == strconv.Itoa(int(id))
		}
	}
	return tag, ok
}
