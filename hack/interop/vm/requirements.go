package vm

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// packages are the Debian packages that have the programs used here.
var packages = map[string]string{
	"qemu-system-x86_64": "qemu-system-x86",
	"cpio":               "cpio",
	"depmod":             "kmod",
	"xz":                 "xz-utils",
	"zstd":               "zstd",
	"python3":            "python3",
	"tshark":             "tshark",
}

// Requirements finds out whether the programs are there that make and run a machine, and
// others. The error says what to install.
func Requirements(others ...string) error {
	missing := []string{}
	for _, program := range append([]string{"qemu-system-x86_64", "cpio", "depmod", "xz", "zstd", "python3"}, others...) {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, packages[program])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("missing programs: apt-get install --no-install-recommends debian-archive-keyring %s", strings.Join(missing, " "))
}
