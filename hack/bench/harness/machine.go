// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/roced/roced/internal/kernel"
)

// machine describes the machine of a measurement.
type machine struct {
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	Kernel     string `json:"kernel"`
}

func thisMachine() machine {
	m := machine{CPU: runtime.GOARCH, Processors: runtime.NumCPU()}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	m.Kernel = kernel.Release()
	return m
}

// commit returns the commit that this program was built from, with a + if files were modified. Programs of "go run" do
// not contain it: then it returns the commit of the working directory.
func commit() (name string) {
	changed := false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				name = s.Value
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	if name == "" {
		head, err := exec.Command("git", "rev-parse", "HEAD").Output()
		if err != nil {
			return "unknown"
		}
		name = strings.TrimSpace(string(head))
		changed = exec.Command("git", "diff", "--quiet", "HEAD", "--", "*.go").Run() != nil
	}
	name = name[:min(len(name), 12)]
	if changed {
		name += "+"
	}
	return name
}
