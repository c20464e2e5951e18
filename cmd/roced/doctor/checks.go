package doctor

import (
	"errors"
	"fmt"

	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"golang.org/x/sys/unix"
)

// check looks at facts.
type check func(*facts) []finding

// checks are all, in the order of the report. Those of the interface need one that was found, and that a
// device can be on.
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
	looked := []check{checkUp, checkAddresses, checkARP, checkLeftovers, checkMTU, checkAttached, checkDriver, checkQueues, checkVLAN, checkGroups, checkFirewall, checkSnooping}
	if f.overUDP() {
		looked = []check{checkUp, checkAddresses, checkLeftovers, checkMTU, checkAttached, checkFirewall, checkSnooping}
	}
	for _, c := range looked {
		list = append(list, c(f)...)
	}
	return list
}

func (f *facts) olderThan(major, minor int) bool { return kernel.Before(f.release, major, minor) }

func checkKernel(f *facts) []finding {
	seen := "Linux " + f.release
	switch {
	case f.olderThan(6, 1):
		return says("kernel", problem, seen, "boot Linux 6.1 or newer; an older one has in-memory networks only, and no service")
	case f.olderThan(6, 2):
		return says("kernel", note, seen+": no trains (6.2), and RDMA MTU 2048 at most (6.6)", "")
	case f.olderThan(6, 6):
		return says("kernel", note, seen+": RDMA MTU 2048 at most (4096 from 6.6 on)", "")
	}
	return ok("kernel", seen+": has all that roced uses")
}

func checkSockets(f *facts) []finding {
	switch {
	case f.network == hca.NetworkUDP:
		return nil
	case f.xdpSocket == nil:
		return ok("AF_XDP", "sockets can be opened")
	case errors.Is(f.xdpSocket, unix.EAFNOSUPPORT):
		return says("AF_XDP", f.unlessUDP(), "the kernel has no AF_XDP sockets", "use a kernel with CONFIG_XDP_SOCKETS for XDP; UDP sockets and roced run --loopback need none")
	case errors.Is(f.xdpSocket, unix.EPERM):
		return nil // checkCapabilities says so
	}
	return says("AF_XDP", f.unlessUDP(), "a socket cannot be opened: "+f.xdpSocket.Error(), "a container or a unit may forbid it: RestrictAddressFamilies=AF_XDP, and seccomp")
}

func checkCapabilities(f *facts) []finding {
	switch {
	case f.network == hca.NetworkUDP:
		return nil
	case f.program != nil:
		return says("capabilities", f.unlessUDP(), "they are there, and yet the kernel takes no XDP program: "+f.program.Error(),
			"a user namespace's are not enough, and seccomp, lockdown or a security module may refuse bpf(2); UDP sockets need none of it")
	case len(f.missing) == 0:
		return ok("capabilities", "this process may use XDP")
	}
	return says("capabilities", f.unlessUDP(), "this process may not use XDP: missing "+f.missingNames(),
		"run it as root, or use the devices of the service, or UDP sockets, which need no capability")
}

// leastLocked is what a device of one queue locks, in bytes.
const leastLocked = 12 << 20

func checkMemory(f *facts) []finding {
	if f.locked >= leastLocked || f.network == hca.NetworkUDP {
		return nil
	}
	return says("memory", f.unlessUDP(), fmt.Sprintf("%d KiB may be locked, and a device of one queue over XDP needs %d", f.locked>>10, leastLocked>>10),
		"ulimit -l, LimitMEMLOCK= in a unit, or CAP_IPC_LOCK")
}

func checkInterface(f *facts) []finding {
	switch {
	case f.name == "":
		return says("interface", note, "none was named", "roced doctor -d eth0 looks at one")
	case f.found != nil && f.offers(f.name):
		return ok(f.name, "is a device of the service, and no interface here; roced show dev shows it")
	case f.found != nil:
		return says(f.name, problem, "there is no such interface: "+f.found.Error(), "ip link; --netns names another namespace")
	}
	return nil
}

// rdmaMTU is the RDMA MTU that an interface's allows, in bytes; 0 for none.
func rdmaMTU(mtu int) int {
	for _, m := range []verbs.MTU{verbs.MTU4096, verbs.MTU2048, verbs.MTU1024, verbs.MTU512, verbs.MTU256} {
		if m.Bytes()+headers <= mtu {
			return m.Bytes()
		}
	}
	return 0
}

// headers are the bytes of the interface's MTU that a packet's headers take.
const headers = 80
