package card

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckSize refuses messages that do not fit a datagram.
func (d *Device) CheckSize(size int) error {
	err := CheckSize(size, d.MTU)
	if err == nil {
		return nil
	}
	attr, failed := d.QueryPort(Port)
	if failed != nil {
		return d.named(failed)
	}
	return d.named(fmt.Errorf("%w, as the interface's MTU is %d", err, attr.InterfaceMTU))
}

// CheckSize refuses what does not fit a datagram of an RDMA MTU. It is EMSGSIZE.
func CheckSize(size, mtu int) error {
	if size < 0 || size > mtu {
		return fmt.Errorf("%w: %d bytes do not fit a datagram: the RDMA MTU is %d", unix.EMSGSIZE, size, mtu)
	}
	return nil
}
