package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roced/roced/internal/capability"
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
// have in effect.
func missingCapabilities() (names []string) {
	for _, missing := range capability.Missing(capability.BPF, capability.NetAdmin, capability.PerfMon) {
		names = append(names, missing.String())
	}
	return names
}
