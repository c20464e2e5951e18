// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The oldest release that roced supports.
const oldestMajor, oldestMinor = 6, 1

// Release returns the release of the running kernel, as uname -r prints it.
func Release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// Before reports whether a release is older than a version. An unknown release is not.
func Before(release string, major, minor int) bool {
	return isKnown(release) && !Since(release, major, minor)
}

// Since reports whether a release is at least a version. An unknown release is not.
func Since(release string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(release, "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}

func isKnown(release string) bool { return Since(release, 0, 0) }

// TooOld reports whether roced does not support the running kernel.
func TooOld() bool { return Before(Release(), oldestMajor, oldestMinor) }

// Explain adds the cause and the remedy to the error of a system call that a part of roced needs, if the
// error indicates an unknown call and the running kernel is too old.
func Explain(err error, part string) error { return explain(err, part, Release()) }

func explain(err error, part, release string) error {
	unknown := slices.ContainsFunc([]error{unix.EINVAL, unix.ENOPROTOOPT, unix.ENOSYS, unix.EOPNOTSUPP}, func(e error) bool { return errors.Is(err, e) })
	if !unknown || !Before(release, oldestMajor, oldestMinor) {
		return err
	}
	return fmt.Errorf("%s: requires Linux %d.%d or newer, but Linux %s is running; boot a newer kernel (%w)", part, oldestMajor, oldestMinor, release, err)
}

// ExplainModule adds the remedy to the error of a request that a kernel module serves, if the module is missing.
func ExplainModule(err error, module string) error {
	return explainModule(err, module, filepath.Join("/lib/modules", Release(), "modules.dep"))
}

func explainModule(err error, module, installed string) error {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	list, _ := os.ReadFile(installed)
	if strings.Contains(string(list), "/"+module+".ko") {
		return fmt.Errorf("the kernel module %s is not loaded; load it as root (modprobe %[1]s) (%w)", module, err)
	}
	return fmt.Errorf("the kernel has no module %s; install the package with the modules of Linux %s, or boot a kernel with CONFIG_%s (%w)",
		module, filepath.Base(filepath.Dir(installed)), strings.ToUpper(module), err)
}
