//go:build linux

package hca

import (
	"errors"
	"fmt"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// channels are how many queues an interface uses now (ethtool -l).
type channels struct {
	receive int // 0: the driver does not say
	send    int
}

// channelsOf asks for the queues of an interface. tool is nil where a sandbox refuses its socket.
func channelsOf(tool *ethtool.Ethtool, link netlink.Link) (c channels, err error) {
	attrs := link.Attrs()
	c.send = max(attrs.NumTxQueues, 1)
	if isAggregate(link) {
		c.send = 1 // it has queues in name only: its slaves choose
	}
	if tun, ok := link.(*netlink.Tuntap); ok {
		c.receive = tun.Queues
	}
	if tool == nil {
		return c, nil
	}
	said, err := tool.GetChannels(attrs.Name)
	switch {
	case errors.Is(err, unix.ENODEV): // it was renamed just now, or has gone
		return c, fmt.Errorf("ethtool %s: %w", attrs.Name, err)
	case err != nil:
		return c, nil
	}
	return channels{receive: int(said.RxCount + said.CombinedCount), send: int(said.TxCount + said.CombinedCount)}, nil
}
