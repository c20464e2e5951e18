// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roced/roced/internal/capability"
	"golang.org/x/sys/unix"
)

// explainLoad adds the missing privileges to an error of bpf(2). It does not wrap the EPERM of package ebpf, whose text
// suggests a low limit of locked memory, which cannot be the cause since Linux 5.11.
func explainLoad(err error) error {
	const doing = "load the steering program"
	missing := missingCapabilities()
	switch {
	case errors.Is(err, unix.EPERM) && len(missing) == 0:
		return fmt.Errorf("%s: %w: the capabilities are held, but not in the initial user namespace, "+
			"or a seccomp filter, kernel lockdown or a security module denies bpf(2)", doing, ErrPermission)
	// EACCES is from the verifier. Without CAP_PERFMON, the verifier of old kernels rejects the program.
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && len(missing) > 0:
		return fmt.Errorf("%s: %w: missing %s", doing, ErrPermission, strings.Join(missing, ", "))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// missingCapabilities returns the names of the capabilities that Load requires and the calling thread does not have in
// its effective set.
func missingCapabilities() (names []string) {
	for _, missing := range capability.Missing(capability.BPF, capability.NetAdmin, capability.PerfMon) {
		names = append(names, missing.String())
	}
	return names
}
