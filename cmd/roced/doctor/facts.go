// SPDX-License-Identifier: Apache-2.0

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

// facts describes a host and one interface.
type facts struct {
	network   hca.Network // requested
	release   string      // kernel release
	xdpSocket error       // error of opening an AF_XDP socket
	missing   []capability.Capability
	program   error             // error of loading an XDP program, if no capability is missing
	locked    uint64            // limit of locked memory in bytes; unlimited with CAP_IPC_LOCK
	holders   []host.PortHolder // of the RoCEv2 port in this namespace
	softRoCE  bool              // rdma_rxe is loaded
	// loopbackUp reports whether the interface lo is up.
	loopbackUp bool
	devices    []daemon.Device
	service    error // error of querying the service for its devices

	name  string // of the interface
	found error  // error of the interface lookup
	link  netlink.Link
	base  netlink.Link // the parent of a VLAN, else link
	vlans []string     // VLAN interfaces on base

	addresses []netip.Addr // in the order of the GID table
	left      []finding    // settings that killed processes left on the interface
	features  xdpFeatures
	offloads  map[string]bool // by feature name of ethtool -k
	queues    int             // in use; 0 if the driver does not report it
	answering string          // lower interface that answers ARP for this one's addresses; empty if none

	groupsByAddress, groupLimit int // IPv4 groups joined by addresses in this namespace; igmp_max_memberships
	rules                       string
	bridge                      *bridge // of which the interface is a port; nil if none
	listened                    time.Duration
	queries                     map[string]bool // IGMP and MLD queries received while listening
}

// bridge is a Linux bridge.
type bridge struct {
	name              string
	snooping, querier bool
}
