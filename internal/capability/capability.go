// SPDX-License-Identifier: Apache-2.0

package capability

import "golang.org/x/sys/unix"

// Capability is a capability of capabilities(7).
type Capability struct {
	name   string
	number int
	// bySysAdmin reports whether CAP_SYS_ADMIN includes the capability, which was part of it before Linux 5.8.
	bySysAdmin bool
}

// The capabilities that this module uses.
var (
	NetRaw         = Capability{name: "CAP_NET_RAW", number: unix.CAP_NET_RAW}
	NetAdmin       = Capability{name: "CAP_NET_ADMIN", number: unix.CAP_NET_ADMIN}
	BPF            = Capability{name: "CAP_BPF", number: unix.CAP_BPF, bySysAdmin: true}
	PerfMon        = Capability{name: "CAP_PERFMON", number: unix.CAP_PERFMON, bySysAdmin: true}
	IPCLock        = Capability{name: "CAP_IPC_LOCK", number: unix.CAP_IPC_LOCK}
	NetBindService = Capability{name: "CAP_NET_BIND_SERVICE", number: unix.CAP_NET_BIND_SERVICE}
	SysAdmin       = Capability{name: "CAP_SYS_ADMIN", number: unix.CAP_SYS_ADMIN}
)

// String returns the name of the capability, such as "CAP_BPF".
func (c Capability) String() string { return c.name }

// Held reports whether the calling thread has the capability in effect.
func (c Capability) Held() bool {
	return inEffect(c.number) || c.bySysAdmin && inEffect(SysAdmin.number)
}

// Missing returns the capabilities of a list that are not held.
func Missing(list ...Capability) (missing []Capability) {
	for _, c := range list {
		if !c.Held() {
			missing = append(missing, c)
		}
	}
	return missing
}

// inEffect reports whether a capability is in the effective set of the calling thread. If the query fails, it returns
// false.
func inEffect(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[number/32].Effective>>(number%32)&1 != 0
}
