package cli

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// capability is one that a command needs (capabilities(7)), and what for.
type capability struct {
	number    int
	name, use string
}

var (
	CapSysAdmin = capability{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "to enter and make network namespaces"}
	CapNetAdmin = capability{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "to make links and attach XDP"}
	CapNetRaw   = capability{unix.CAP_NET_RAW, "CAP_NET_RAW", "to open AF_XDP sockets"}
)

// RequireCapabilities says which of the needed capabilities the process lacks. It is unix.EPERM.
func RequireCapabilities(doing string, needed ...capability) error {
	effective, err := effectiveCapabilities()
	if err != nil {
		return fmt.Errorf("%s: read the process's capabilities: %w", doing, err)
	}
	var missing []string
	for _, c := range needed {
		if effective>>c.number&1 == 0 {
			missing = append(missing, fmt.Sprintf("%s (%s)", c.name, c.use))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: missing %s; run it as root", doing, unix.EPERM, strings.Join(missing, ", "))
}

func effectiveCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), err
}
