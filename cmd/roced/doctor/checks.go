// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// check derives findings from the facts.
type check func(*facts) []finding

// checks runs all checks in report order. The checks of the interface run only if it was found and a device
// can be opened on it.
func checks(f *facts) (list []finding) {
	for _, c := range []check{checkKernel, checkSockets, checkCapabilities, checkMemory, checkNetwork, checkLoopback, checkPort, checkService, checkInterface} {
		list = append(list, c(f)...)
	}
	if f.link == nil {
		return list
	}
	kind := checkKind(f)
	list = append(list, kind...)
	if problems(kind) > 0 {
		return list
	}
	selected := []check{checkUp, checkAddresses, checkARP, checkLeftovers, checkMTU, checkAttached, checkDriver, checkQueues, checkVLAN, checkGroups, checkFirewall, checkSnooping}
	if f.overUDP() {
		selected = []check{checkUp, checkAddresses, checkLeftovers, checkMTU, checkAttached, checkFirewall, checkSnooping}
	}
	for _, c := range selected {
		list = append(list, c(f)...)
	}
	return list
}

func (f *facts) olderThan(major, minor int) bool { return kernel.Before(f.release, major, minor) }

func checkKernel(f *facts) []finding {
	seen := "Linux " + f.release
	switch {
	case f.olderThan(6, 1):
		return report("kernel", problem, seen, "boot Linux 6.1 or newer; older kernels support in-memory networks only, without the service")
	case f.olderThan(6, 2):
		return report("kernel", note, seen+": no packet trains (need 6.2), RDMA MTU limited to 2048 (4096 needs 6.6)", "")
	case f.olderThan(6, 6):
		return report("kernel", note, seen+": RDMA MTU limited to 2048 (4096 needs 6.6)", "")
	}
	return ok("kernel", seen+": supports all features")
}

func checkSockets(f *facts) []finding {
	switch {
	case f.network == hca.NetworkUDP:
		return nil
	case f.xdpSocket == nil:
		return ok("AF_XDP", "sockets can be opened")
	case errors.Is(f.xdpSocket, unix.EAFNOSUPPORT):
		return report("AF_XDP", f.withoutXDP(), "the kernel has no AF_XDP sockets", "use a kernel with CONFIG_XDP_SOCKETS for XDP; UDP sockets and roced run --loopback work without it")
	case errors.Is(f.xdpSocket, unix.EPERM):
		return nil // checkCapabilities reports this
	}
	return report("AF_XDP", f.withoutXDP(), "cannot open a socket: "+f.xdpSocket.Error(), "check whether the container or the unit forbids it: RestrictAddressFamilies=AF_XDP, seccomp")
}

func checkCapabilities(f *facts) []finding {
	switch {
	case f.network == hca.NetworkUDP:
		return nil
	case f.program != nil:
		return report("capabilities", f.withoutXDP(), "all are held, but the kernel rejects XDP programs: "+f.program.Error(),
			"capabilities of a user namespace are not sufficient; seccomp, lockdown or a security module may deny bpf(2). UDP sockets need no privileges")
	case len(f.missing) == 0:
		return ok("capabilities", "this process is allowed to use XDP")
	}
	return report("capabilities", f.withoutXDP(), "this process is not allowed to use XDP: missing "+f.missingNames(),
		"run as root, use the devices of the service, or use UDP sockets, which need no capabilities")
}

// minLocked is the memory that a device with one queue locks, in bytes.
const minLocked = 12 << 20

func checkMemory(f *facts) []finding {
	if f.locked >= minLocked || f.network == hca.NetworkUDP {
		return nil
	}
	return report("memory", f.withoutXDP(), fmt.Sprintf("the limit of locked memory is %d KiB; a device with one queue needs %d KiB for XDP", f.locked>>10, minLocked>>10),
		"raise it with ulimit -l or LimitMEMLOCK= in the unit, or add CAP_IPC_LOCK")
}

func checkInterface(f *facts) []finding {
	switch {
	case f.name == "":
		return report("interface", note, "not checked: no interface given", "roced doctor -d eth0")
	case f.found != nil && f.offers(f.name):
		return ok(f.name, "is a device of the service, not an interface of this namespace (see roced show dev)")
	case f.found != nil:
		return report(f.name, problem, "interface not found: "+f.found.Error(), "ip link lists interfaces; --netns selects another namespace")
	}
	return nil
}

// rdmaMTU returns the largest RDMA MTU that fits the interface MTU, in bytes; 0 if none does.
func rdmaMTU(mtu int) int {
	for _, m := range []verbs.MTU{verbs.MTU4096, verbs.MTU2048, verbs.MTU1024, verbs.MTU512, verbs.MTU256} {
		if m.Bytes()+headers <= mtu {
			return m.Bytes()
		}
	}
	return 0
}

// headers is the part of the interface MTU that packet headers use, in bytes.
const headers = 80
