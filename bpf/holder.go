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
	command string // name of the command
	tag     string // tag of the program in hexadecimal
}

// findHolders returns the processes that hold a bpf_link of a program. It reads the fdinfo of all processes that the
// caller is allowed to inspect: those of its own user, or all with CAP_SYS_PTRACE.
func findHolders(id ebpf.ProgramID) (holders []holder) {
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // the only possible error is an invalid pattern
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

// linkedProgram reports whether a descriptor is a bpf_link of the program, and returns the program's tag. It returns
// false if the file no longer exists.
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
