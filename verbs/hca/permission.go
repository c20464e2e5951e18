package hca

import (
	"fmt"
	"os"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"golang.org/x/sys/unix"
)

// capability is one of capabilities(7), and what Open needs it for.
type capability struct {
	name   string
	number int
	// bySysAdmin says that CAP_SYS_ADMIN includes it, as it did before Linux 5.8.
	bySysAdmin bool
	// optional: newer kernels do without it, slower and with less counted.
	optional bool
}

// capabilities are those that Open needs with these options; CAP_IPC_LOCK is apart, since a
// limit that is high enough does as well.
func (o *options) capabilities() []capability {
	list := []capability{
		{name: "CAP_NET_RAW", number: unix.CAP_NET_RAW},
		{name: "CAP_BPF", number: unix.CAP_BPF, bySysAdmin: true},
		{name: "CAP_NET_ADMIN", number: unix.CAP_NET_ADMIN},
		{name: "CAP_PERFMON", number: unix.CAP_PERFMON, bySysAdmin: true, optional: true},
	}
	if o.needsSysAdmin() {
		list = append(list, capability{name: "CAP_SYS_ADMIN", number: unix.CAP_SYS_ADMIN})
	}
	return list
}

// needsSysAdmin: for setns(2), and for a sysfs of the namespace.
func (o *options) needsSysAdmin() bool {
	return o.namespace != "" || o.tuning.DeferHardIRQs != 0 || o.tuning.GROFlushTimeout != 0
}

// checkEntry is checkPermission where the namespace cannot even be entered: the interface is
// not known, so one queue is taken for granted.
func (b *builder) checkEntry() error {
	if b.options.namespace == "" || hasCapability(unix.CAP_SYS_ADMIN) {
		return nil
	}
	return b.options.checkPermission(0)
}

// checkPermission tells of all that is missing at once, before anything is opened.
func (b *builder) checkPermission() error { return b.options.checkPermission(b.lockedBytes()) }

// checkPermission compares what the calling thread may with what Open needs, lock bytes of
// locked memory among it.
func (o *options) checkPermission(lock uint64) error {
	needed := o.capabilities()
	var missing []string
	refused := false
	for _, c := range needed {
		if hasCapability(c.number) || c.bySysAdmin && hasCapability(unix.CAP_SYS_ADMIN) {
			continue
		}
		missing = append(missing, c.name)
		refused = refused || !c.optional
	}
	limit, enough := memoryLimit(lock)
	if !refused && enough {
		return nil
	}
	cause := bpf.ErrPermission
	if !refused {
		cause, missing = xsk.ErrLockedMemory, nil
	}
	if !enough {
		missing = append(missing, fmt.Sprintf("CAP_IPC_LOCK or %d KiB of locked memory (the limit is %d KiB)", lock>>10, limit>>10))
	}
	return fmt.Errorf("%w: missing %s; %s", cause, strings.Join(missing, ", "), howToGrant(needed, lock))
}

// howToGrant says how a file and how a service gets all that is needed.
func howToGrant(needed []capability, lock uint64) string {
	var names []string
	for _, c := range needed {
		names = append(names, c.name)
	}
	names = append(names, "CAP_IPC_LOCK")
	program, err := os.Executable()
	if err != nil {
		program = "PROGRAM"
	}
	return fmt.Sprintf("setcap %s+ep %s; or in a systemd unit AmbientCapabilities=%s (instead of CAP_IPC_LOCK: LimitMEMLOCK=%d)",
		strings.ToLower(strings.Join(names, ",")), program, strings.Join(names, " "), lock)
}

// memoryLimit says whether a process may lock so many bytes, and what its limit is. What else
// its user has locked is not known.
func memoryLimit(bytes uint64) (limit uint64, enough bool) {
	var l unix.Rlimit
	if hasCapability(unix.CAP_IPC_LOCK) || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil {
		return 0, true
	}
	return l.Cur, l.Cur >= bytes
}

// hasCapability says whether the calling thread has a capability in effect.
func hasCapability(number int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[number/32].Effective>>(number%32)&1 != 0
}
