//go:build linux

package hca

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/bpf"
)

// watchPause is the time between two checks that the steering program is still attached. The kernel
// has no notification of `bpftool link detach` (and refuses `ip link set … xdp off`), so the card
// polls. A check is one system call.
const watchPause = time.Second

// watch fails a card whose steering program somebody has detached: it would receive nothing, without
// a sign. It does not attach the program again, since it was detached on purpose.
func (card *Card) watch() {
	look := time.NewTicker(watchPause)
	defer look.Stop()
	for {
		select {
		case <-card.done:
			return
		case <-look.C:
		}
		if card.vlan != 0 {
			card.changes.Port() // the MAC of the interface below: netlink reports nothing of it
		}
		if err := card.steering.Check(); errors.Is(err, bpf.ErrDetached) {
			card.fail(card.whyDetached(err))
			return
		}
	}
}

// whyDetached is the cause of a detached program: that the interface is gone, or err.
func (card *Card) whyDetached(err error) error {
	card.asking.Lock()
	defer card.asking.Unlock()
	if _, gone := card.host.port(); errors.Is(gone, errInterfaceGone) {
		return gone
	}
	return fmt.Errorf("%w (bpftool link detach?); open the device again", err)
}
