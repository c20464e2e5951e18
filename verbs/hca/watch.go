package hca

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/bpf"
)

// watchPause is how often a device looks whether its program is still there. The kernel tells
// nobody of `bpftool link detach` (`ip link set … xdp off` it refuses), so there is nothing
// to wait for. A look is one system call.
const watchPause = time.Second

// watch ends a device whose steering program somebody took away: it would be deaf, and nobody
// would know. It was taken away on purpose, so it is not put back.
func (d *Device) watch() {
	look := time.NewTicker(watchPause)
	defer look.Stop()
	for {
		select {
		case <-d.done:
			return
		case <-look.C:
		}
		if d.vlan != 0 {
			d.news.Port() // the MAC of the interface below: there are no news of it
		}
		if err := d.steering.Check(); errors.Is(err, bpf.ErrDetached) {
			d.fail(d.whyDetached(err))
			return
		}
	}
}

// whyDetached: an interface that has gone took the program with it.
func (d *Device) whyDetached(err error) error {
	d.asking.Lock()
	defer d.asking.Unlock()
	if _, gone := d.host.port(); errors.Is(gone, errInterfaceGone) {
		return gone
	}
	return fmt.Errorf("%w (bpftool link detach?); open the device again", err)
}
