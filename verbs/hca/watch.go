//go:build linux

package hca

import "time"

// watchPause is the time between two checks that packets can still come. The kernel has no notification of
// `bpftool link detach` (and refuses `ip link set … xdp off`), so the card polls. A check is one system call.
const watchPause = time.Second

// watch fails a card to which no packets come any more.
func (card *Card) watch() {
	look := time.NewTicker(watchPause)
	defer look.Stop()
	for {
		select {
		case <-card.done:
			return
		case <-look.C:
		}
		if err := card.host.Check(); err != nil {
			card.fail(err)
			return
		}
	}
}
