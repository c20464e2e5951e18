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

// whyDetached: an interface that has gone took the program with it.
func (card *Card) whyDetached(err error) error {
	card.asking.Lock()
	defer card.asking.Unlock()
	if _, gone := card.host.port(); errors.Is(gone, errInterfaceGone) {
		return gone
	}
	return fmt.Errorf("%w (bpftool link detach?); open the device again", err)
}
