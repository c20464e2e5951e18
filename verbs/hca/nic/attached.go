//go:build linux

package nic

import (
	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/host"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Attached says which XDP program takes the packets of an interface, in the namespace of a file, before its sockets get
// them; empty if none does, or it is not known. steering says that it is another card's; without CAP_SYS_ADMIN that
// is not known either, and false.
func Attached(name, namespace string) (program string, steering bool) {
	inside, err := host.Enter(namespace)
	if err != nil {
		return "", false
	}
	defer inside.Close()
	_ = inside.Do(func() (err error) {
		b := &builder{name: name}
		if b.netlink, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		defer b.netlink.Close()
		if err := b.findLink(); err != nil {
			return err
		}
		program, steering = bpf.Attached(b.base)
		return nil
	})
	return program, steering
}
