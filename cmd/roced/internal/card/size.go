// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// CheckSize rejects messages that do not fit a datagram.
func (d *Device) CheckSize(size int) error {
	err := CheckSize(size, d.MTU)
	if err == nil {
		return nil
	}
	attr, failed := d.QueryPort(Port)
	if failed != nil {
		return d.named(failed)
	}
	return d.named(fmt.Errorf("%w because the MTU of the interface is %d", err, attr.InterfaceMTU))
}

// CheckSize returns EMSGSIZE if a message does not fit a datagram with an RDMA MTU.
func CheckSize(size, mtu int) error {
	if size < 0 || size > mtu {
		return fmt.Errorf("%w: %d bytes exceed the RDMA MTU, which is %d", unix.EMSGSIZE, size, mtu)
	}
	return nil
}

// headers is the maximum size of packet headers with some reserve, in bytes.
const headers = 104

// CheckPathMTU returns EINVAL if the path MTU, in bytes, exceeds that of the interface.
func (d *Device) CheckPathMTU(bytes int) error {
	attr, err := d.QueryPort(Port)
	if err != nil || bytes <= attr.ActiveMTU.Bytes() {
		return err
	}
	return errno.New(fmt.Sprintf("--mtu %d exceeds the RDMA MTU of %s, which is %d because the MTU of the interface is %d; first increase it on both hosts and the switches: ip link set dev %[2]s mtu %[5]d",
		bytes, d.Attr.Name, attr.ActiveMTU.Bytes(), attr.InterfaceMTU, bytes+headers), unix.EINVAL)
}
