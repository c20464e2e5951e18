package ib

import "github.com/roced/roced/datapath/wire"

// GlobalRoute is where a packet goes and how (ibv_global_route).
type GlobalRoute struct {
	DGID         wire.GID
	SGIDIndex    int
	FlowLabel    uint32 // 20 bits; also picks the UDP source port
	HopLimit     uint8  // 0 stands for 64
	TrafficClass uint8
}

// AHAttr describes an address (ibv_ah_attr). On Ethernet the route is all there is.
type AHAttr struct {
	GRH  GlobalRoute
	Port uint8 // always 1
	SL   uint8 // service level, 0 to 7; the frames' Ethernet priority does not follow it
}
