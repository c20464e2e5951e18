// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strings"
)

// PortRules are the settings of a network namespace for port numbers (ip-sysctl).
type PortRules struct {
	First, Last  uint16 // automatically assigned ports: net.ipv4.ip_local_port_range
	Unprivileged int    // ports below need privileges: net.ipv4.ip_unprivileged_port_start
	BindV6Only   bool   // :: means IPv6 only by default: net.ipv6.bindv6only
}

// DefaultPortRules returns the defaults of the kernel.
func DefaultPortRules() PortRules { return PortRules{First: 32768, Last: 60999, Unprivileged: 1024} }

// ReadPortRules reads the settings of the calling thread's namespace. Unreadable settings have their
// defaults.
func ReadPortRules() PortRules { return readPortRules("/proc/sys/net") }

func readPortRules(dir string) PortRules {
	rules := DefaultPortRules()
	var first, last uint16
	if scanned(dir+"/ipv4/ip_local_port_range", &first, &last) && 0 < first && first <= last {
		rules.First, rules.Last = first, last
	}
	unprivileged, only := 0, 0
	if scanned(dir+"/ipv4/ip_unprivileged_port_start", &unprivileged) {
		rules.Unprivileged = unprivileged
	}
	rules.BindV6Only = scanned(dir+"/ipv6/bindv6only", &only) && only != 0
	return rules
}

// scanned reads numbers from a file.
func scanned(name string, numbers ...any) bool {
	text, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	n, err := fmt.Fscan(strings.NewReader(string(text)), numbers...)
	return err == nil && n == len(numbers)
}
