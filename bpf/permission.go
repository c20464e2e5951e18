package bpf

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// explainLoad says what bpf(2) wanted. The kernel's EPERM is not passed on: the
// library adds to it that the limit on locked memory may be too low, which has not
// been the cause since Linux 5.11.
func explainLoad(err error) error {
	const doing = "load the steering program"
	missing := missingCapabilities()
	switch {
	case errors.Is(err, unix.EPERM) && len(missing) == 0:
		return fmt.Errorf("%s: %w: the capabilities are there, but not in the initial user namespace, "+
			"or a seccomp filter, kernel lockdown or a security module refuses bpf(2)", doing, ErrPermission)
	// EACCES is the verifier's. Without CAP_PERFMON an old one refuses the program.
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && len(missing) > 0:
		return fmt.Errorf("%s: %w: missing %s", doing, ErrPermission, strings.Join(missing, ", "))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// missingCapabilities names those that Load asks for and the calling thread does not
// have in effect: capabilities(7).
func missingCapabilities() []string {
	var missing []string
	for _, needed := range []struct {
		name       string
		capability int
		included   bool // in CAP_SYS_ADMIN, as all was before Linux 5.8
	}{
		{"CAP_BPF", unix.CAP_BPF, true},
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, false},
		{"CAP_PERFMON", unix.CAP_PERFMON, true},
	} {
		if !hasCapability(needed.capability) && !(needed.included && hasCapability(unix.CAP_SYS_ADMIN)) {
			missing = append(missing, needed.name)
		}
	}
	return missing
}

func hasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective>>(capability%32)&1 != 0
}
