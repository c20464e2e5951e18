package doctor

import (
	"net/netip"
	"time"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netlink"
)

// facts are what is seen of a host and one interface.
type facts struct {
	network   hca.Network // the way that is asked for
	release   string      // of the kernel
	xdpSocket error       // of opening an AF_XDP socket
	missing   []capability.Capability
	program   error             // of loading an XDP program, if no capability is missing
	locked    uint64            // bytes that may be locked; all if CAP_IPC_LOCK is held
	holders   []host.PortHolder // of RoCEv2's port, in this namespace
	softRoCE  bool              // it is loaded
	// loopbackUp says that the interface lo is up.
	loopbackUp bool
	devices    []daemon.Device
	service    error // of asking a service for its devices

	name  string // of the interface
	found error  // of looking for it
	link  netlink.Link
	base  netlink.Link // below a VLAN; else link
	vlans []string     // on the interface

	addresses []netip.Addr // of the GID table, in its order
	left      []finding    // changes that killed processes left on the interface
	features  xdpFeatures
	offloads  map[string]bool // by ethtool -k's names
	queues    int             // in use; 0 if the driver does not say
	answering string          // the interface below that answers ARP for this one's addresses; empty for none

	groupsByAddress, groupLimit int // IPv4 groups joined by addresses in this namespace; igmp_max_memberships
	rules                       string
	bridge                      *bridge // that the interface is a port of; nil for none
	listened                    time.Duration
	queries                     map[string]bool // IGMP and MLD queries heard meanwhile
}

// bridge is a Linux bridge.
type bridge struct {
	name              string
	snooping, querier bool
}
