package cli

import (
	"fmt"
	"strings"

	"github.com/roced/roced/internal/capability"
	"golang.org/x/sys/unix"
)

// uses is what commands need capabilities for (capabilities(7)).
var uses = map[capability.Capability]string{
	capability.SysAdmin: "to enter and make network namespaces",
	capability.NetAdmin: "to make links and attach XDP",
	capability.NetRaw:   "to open AF_XDP sockets",
}

// RequireCapabilities says which of the needed capabilities the process lacks. It is unix.EPERM.
func RequireCapabilities(doing string, needed ...capability.Capability) error {
	var missing []string
	for _, c := range capability.Missing(needed...) {
		missing = append(missing, fmt.Sprintf("%v (%s)", c, uses[c]))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: missing %s; run it as root", doing, unix.EPERM, strings.Join(missing, ", "))
}
