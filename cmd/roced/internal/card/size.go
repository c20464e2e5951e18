package card

import (
	"fmt"

	"github.com/roced/roced/internal/errno"
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

// headers is how much longer than its payload a packet may be, and some room.
const headers = 104

// CheckPathMTU refuses a path MTU, in bytes, that the interface does not carry. It is EINVAL.
func (d *Device) CheckPathMTU(bytes int) error {
	attr, err := d.QueryPort(Port)
	if err != nil || bytes <= attr.ActiveMTU.Bytes() {
		return err
	}
	return errno.New(fmt.Sprintf("--mtu %d: the RDMA MTU of %s is %d bytes, as the interface's MTU is %d; let that grow first, on both sides and in between: ip link set dev %[2]s mtu %[5]d",
		bytes, d.Attr.Name, attr.ActiveMTU.Bytes(), attr.InterfaceMTU, bytes+headers), unix.EINVAL)
}
