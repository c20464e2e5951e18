// SPDX-License-Identifier: Apache-2.0

package release

import "runtime/debug"

const module = "github.com/roced/roced"

// tag is set by the linker for packages (-ldflags "-X github.com/roced/roced/internal/release.tag=v1.2.3").
var tag string

// Version returns the version tag: that of the linker flag, otherwise that in the build information of roced
// or of another program that uses the module; "(devel)" if neither is available.
func Version() string {
	if tag != "" {
		return tag
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, used := range append(info.Deps, &info.Main) {
		if used.Path == module && used.Version != "" {
			return used.Version
		}
	}
	return "(devel)"
}
