// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/roced/roced/internal/capability"
	"golang.org/x/sys/unix"
)

// uses describes what commands need capabilities for (capabilities(7)).
var uses = map[capability.Capability]string{
	capability.SysAdmin: "to enter and create network namespaces",
	capability.NetAdmin: "to create links and attach XDP programs",
	capability.NetRaw:   "to open AF_XDP sockets",
}

// RequireCapabilities returns unix.EPERM with the missing capabilities, if any.
func RequireCapabilities(doing string, needed ...capability.Capability) error {
	var missing []string
	for _, c := range capability.Missing(needed...) {
		missing = append(missing, fmt.Sprintf("%v (%s)", c, uses[c]))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: missing %s; run as root", doing, unix.EPERM, strings.Join(missing, ", "))
}
