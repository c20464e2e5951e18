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

// look gathers facts on the calling thread, which is in the interface's namespace. What cannot be
// seen is left out; name may be empty.
func look(ctx context.Context, network hca.Network, name, socket string, listen time.Duration) *facts {
	f := &facts{network: network, name: name}
	f.lookAtHost()
	f.lookAtPort()
	f.lookAtService(ctx, socket)
	if name == "" {
		return f
	}
	if f.link, f.found = netlink.LinkByName(name); f.found != nil {
		return f
	}
	f.lookAtInterface()
	f.lookAtGroups()
	f.rules = readRules(ctx)
	f.queries = listenForQueries(ctx, f.link.Attrs().Index, listen)
	if ctx.Err() == nil { // else it was not as long as that
		f.listened = listen
	}
	return f
}

func (f *facts) lookAtHost() {
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

// lookAtService asks the service what it has. It ends with ctx.
func (f *facts) lookAtService(ctx context.Context, socket string) {
	c, err := daemon.Dial(ctx, socket)
	if ctx.Err() != nil {
		err = errNoAnswer
	}
	if f.service = err; err != nil {
		return
	}
	defer c.Close()
	for _, name := range c.Devices {
		d, err := c.Look(name)
		if err != nil {
			f.service = err
			return
		}
		f.devices = append(f.devices, d)
	}
}

func (f *facts) lookAtInterface() {
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
		f.left = append(f.left, finding{f.name + " leftovers", warning, "a killed process left " + l.What, l.Undo + "; the next device that root opens here undoes it too"})
	}
	f.features, _ = askXDPFeatures(f.base.Attrs().Index)
	f.lookAtDriver(f.base.Attrs().Name)
	f.bridge = f.lookAtBridge()
	f.answering = host.LowerAnsweringARP(f.link, netlink.LinkByIndex)
}

func (f *facts) lookAtDriver(name string) {
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

// lookAtGroups counts the groups that are joined by addresses: all share one socket of the kernel's.
func (f *facts) lookAtGroups() {
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

// lookAtBridge reads the bridge that the interface is a port of, or is.
func (f *facts) lookAtBridge() *bridge {
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

// bridgeAttributes are those of a bridge (IFLA_BR_*), of which the library knows few.
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

// ruleTime bounds the programs that print rules.
const ruleTime = 10 * time.Second

// readRules is the firewall's rules, as whatever program is there prints them.
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
