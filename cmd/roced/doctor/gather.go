// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/kernel"
	"github.com/roced/roced/verbs/hca"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// gather collects the facts on the calling thread, which is in the interface's namespace. Facts that cannot be
// determined are omitted; name may be empty.
func gather(ctx context.Context, network hca.Network, name, socket string, listen time.Duration) *facts {
	f := &facts{network: network, name: name}
	f.readHost()
	f.readPort()
	f.queryService(ctx, socket)
	if name == "" {
		return f
	}
	if f.link, f.found = netlink.LinkByName(name); f.found != nil {
		return f
	}
	f.readInterface()
	f.readGroups()
	f.rules = readRules(ctx)
	f.queries = listenForQueries(ctx, f.link.Attrs().Index, listen)
	if ctx.Err() == nil { // otherwise the query time was shorter
		f.listened = listen
	}
	return f
}

func (f *facts) readHost() {
	f.release = kernel.Release()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if f.xdpSocket = err; err == nil {
		unix.Close(fd)
	}
	f.missing = capability.Missing(capability.NetRaw, capability.NetAdmin, capability.BPF, capability.PerfMon)
	if len(f.missing) == 0 {
		f.program = features.HaveProgramType(ebpf.XDP)
	}
	var limit unix.Rlimit
	if f.locked = ^uint64(0); !capability.IPCLock.Held() && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		f.locked = limit.Cur
	}
}

// queryService queries the service for its devices, until ctx is done.
func (f *facts) queryService(ctx context.Context, socket string) {
	c, err := daemon.Dial(ctx, socket)
	if ctx.Err() != nil {
		err = errNoResponse
	}
	if f.service = err; err != nil {
		return
	}
	defer c.Close()
	for _, name := range c.Devices {
		d, err := c.QueryDevice(name)
		if err != nil {
			f.service = err
			return
		}
		f.devices = append(f.devices, d)
	}
}

func (f *facts) readInterface() {
	f.base = f.link
	if vlan, is := f.link.(*netlink.Vlan); is {
		if below, err := netlink.LinkByIndex(vlan.ParentIndex); err == nil {
			f.base = below
		}
	}
	links, _ := netlink.LinkList()
	for _, l := range links {
		if _, is := l.(*netlink.Vlan); is && l.Attrs().ParentIndex == f.base.Attrs().Index {
			f.vlans = append(f.vlans, l.Attrs().Name)
		}
	}
	gids, _ := hca.ListGIDs(f.name)
	for _, entry := range gids {
		f.addresses = append(f.addresses, entry.GID.Addr().Unmap())
	}
	left, _ := hca.Leftovers(f.name)
	for _, l := range left {
		f.left = append(f.left, finding{f.name + " leftovers", warning, "a killed process left " + l.What, l.Undo + "; the next device that root opens on this interface also does this"})
	}
	f.features, _ = queryXDPFeatures(f.base.Attrs().Index)
	f.readDriver(f.base.Attrs().Name)
	f.bridge = f.readBridge()
	f.answering = host.LowerAnsweringARP(f.link, netlink.LinkByIndex)
}

func (f *facts) readDriver(name string) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return
	}
	defer tool.Close()
	f.offloads, _ = tool.Features(name)
	if channels, err := tool.GetChannels(name); err == nil {
		f.queues = int(channels.RxCount + channels.CombinedCount)
	}
}

// readGroups counts the groups joined by addresses, which share one kernel socket.
func (f *facts) readGroups() {
	list, _ := netlink.AddrList(nil, netlink.FAMILY_V4)
	for _, a := range list {
		if a.Flags&unix.IFA_F_MCAUTOJOIN != 0 && a.IP.IsMulticast() {
			f.groupsByAddress++
		}
	}
	text, err := os.ReadFile("/proc/sys/net/ipv4/igmp_max_memberships")
	if err == nil {
		f.groupLimit, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
}

// readBridge returns the bridge that the interface is a port of, or the interface itself if it is a bridge.
func (f *facts) readBridge() *bridge {
	link := f.link
	if master := f.link.Attrs().MasterIndex; master > 0 {
		var err error
		if link, err = netlink.LinkByIndex(master); err != nil {
			return nil
		}
	}
	if link.Type() != "bridge" {
		return nil
	}
	b := &bridge{name: link.Attrs().Name}
	attributes, err := bridgeAttributes(link.Attrs().Index)
	if err != nil {
		return nil
	}
	b.snooping = len(attributes[nl.IFLA_BR_MCAST_SNOOPING]) > 0 && attributes[nl.IFLA_BR_MCAST_SNOOPING][0] != 0
	b.querier = len(attributes[nl.IFLA_BR_MCAST_QUERIER]) > 0 && attributes[nl.IFLA_BR_MCAST_QUERIER][0] != 0
	return b
}

// bridgeAttributes returns the IFLA_BR_* attributes of a bridge, most of which the netlink package does not
// decode.
func bridgeAttributes(index int) (map[uint16][]byte, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(index)
	request.AddData(message)
	answers, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil || len(answers) == 0 {
		return nil, fmt.Errorf("bridge %d: %w", index, err)
	}
	link, err := nl.ParseRouteAttrAsMap(answers[0][unix.SizeofIfInfomsg:])
	if err != nil {
		return nil, err
	}
	info, err := nl.ParseRouteAttrAsMap(link[unix.IFLA_LINKINFO].Value)
	if err != nil {
		return nil, err
	}
	data, err := nl.ParseRouteAttrAsMap(info[nl.IFLA_INFO_DATA].Value)
	list := map[uint16][]byte{}
	for kind, a := range data {
		list[kind] = a.Value
	}
	return list, err
}

// ruleTime is the timeout of the programs that print rules.
const ruleTime = 10 * time.Second

// readRules returns the firewall rules that the available programs print.
func readRules(ctx context.Context) (text string) {
	ctx, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	for _, command := range [][]string{{"nft", "list", "ruleset"}, {"iptables-save"}, {"ip6tables-save"}} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err == nil {
			text += string(out)
		}
	}
	return text
}
