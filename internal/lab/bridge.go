// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/kernel"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Bridge is a switch: a Linux bridge in its own namespace, with IGMP and MLD snooping and a querier. It
// queries once per second, the maximum rate of the kernel, and removes members that have not responded for
// 2.5 seconds.
//
//	host ns          bridge ns           host ns
//	┌──────┐   ┌────────────────────┐   ┌──────┐
//	│ eth0 ──── port1  br0  port2 ──── eth0    │
//	└──────┘   └────────────────────┘   └──────┘
type Bridge struct {
	*Namespace
	ports int
}

// bridgeName is the bridge's interface. Its queries can be captured there.
const bridgeName = "br0"

// NewBridge creates a bridge without ports.
func NewBridge(prefix string) (*Bridge, error) {
	ns, err := New(prefix)
	if err != nil {
		return nil, err
	}
	b := &Bridge{Namespace: ns}
	if err := b.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("bridge in %s: %w", ns.Name(), err), ns.Close())
	}
	return b, nil
}

func (b *Bridge) start() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	if err := b.nl.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return kernel.ExplainModule(err, "bridge")
	}
	if err := b.Do(b.configure); err != nil {
		return err
	}
	return b.bringUp(bridgeName)
}

// configure runs inside the namespace. It sets the intervals before it enables the querier, because a new
// querier floods all groups for the response interval set at that time, by default 10 seconds.
func (b *Bridge) configure() error {
	link, err := b.nl.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	intervals := map[int][]byte{}
	for kind, interval := range snoopingIntervals {
		intervals[kind] = binary.NativeEndian.AppendUint64(nil, uint64(interval/clockTick))
	}
	if err := setBridge(link, intervals); err != nil {
		return err
	}
	return setBridge(link, map[int][]byte{nl.IFLA_BR_MCAST_SNOOPING: {1}, nl.IFLA_BR_MCAST_QUERIER: {1}})
}

// setBridge sets attributes of the bridge. The netlink package supports only the snooping attribute.
func setBridge(link netlink.Link, attributes map[int][]byte) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	header := nl.NewIfInfomsg(unix.AF_UNSPEC)
	header.Index = int32(link.Attrs().Index)
	request.AddData(header)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	for kind, value := range attributes {
		data.AddRtAttr(kind, value)
	}
	request.AddData(info)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// clockTick is the unit of the bridge's intervals (USER_HZ).
const clockTick = 10 * time.Millisecond

// snoopingIntervals are the intervals of a bridge. The kernel does not permit shorter query intervals.
var snoopingIntervals = map[int]time.Duration{
	nl.IFLA_BR_MCAST_QUERY_INTVL:          time.Second,
	nl.IFLA_BR_MCAST_STARTUP_QUERY_INTVL:  time.Second,
	nl.IFLA_BR_MCAST_QUERY_RESPONSE_INTVL: 200 * time.Millisecond,
	nl.IFLA_BR_MCAST_MEMBERSHIP_INTVL:     2500 * time.Millisecond,
	nl.IFLA_BR_MCAST_LAST_MEMBER_INTVL:    100 * time.Millisecond, // shorter values cause IGMPv1 queries
}

// Port creates a link from a host to the bridge. It returns the name of the bridge's end.
func (b *Bridge) Port(host *Namespace, ifname string, options ...VethOption) (port string, err error) {
	b.ports++
	port = fmt.Sprintf("port%d", b.ports)
	if err := Veth(b.Namespace, host, port, ifname, options...); err != nil {
		return "", err
	}
	if err := b.enslave(port); err != nil {
		return "", err
	}
	return port, nil
}
