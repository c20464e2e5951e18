package verbs

// capabilities says what kinds of management and addressing a port's protocol has (rdma_cap_*). A port of
// this package speaks RoCE v2, whatever the Provider, and the answers are those that the kernel gives for such
// a port: they need nothing of the Context that they are a part of. All are false for a port that does not exist.
type capabilities struct{}

const (
	firstPort = 1
	lastPort  = 1
	madSize   = 256 // bytes (IBA 13.4.2)
)

// CapIBSwitch reports whether the device is a switch, whose ports begin at 0 (rdma_cap_ib_switch).
func (capabilities) CapIBSwitch() bool { return false }

// StartPort is the number of the device's first port (rdma_start_port).
func (capabilities) StartPort() uint8 { return firstPort }

// EndPort is the number of the device's last port (rdma_end_port).
func (capabilities) EndPort() uint8 { return lastPort }

// IsPortValid reports whether the device has a port with this number (rdma_is_port_valid).
func (c capabilities) IsPortValid(port uint8) bool { return port >= firstPort && port <= lastPort }

// ProtocolRoCE reports whether the port speaks RoCE of any version (rdma_protocol_roce).
func (c capabilities) ProtocolRoCE(port uint8) bool { return c.IsPortValid(port) }

// ProtocolRoCEUDPEncap reports whether the port speaks RoCE v2 (rdma_protocol_roce_udp_encap).
func (c capabilities) ProtocolRoCEUDPEncap(port uint8) bool { return c.IsPortValid(port) }

// ProtocolIB reports whether the port speaks InfiniBand itself (rdma_protocol_ib).
func (capabilities) ProtocolIB(uint8) bool { return false }

// ProtocolRoCEEthEncap reports whether the port speaks RoCE v1 (rdma_protocol_roce_eth_encap).
func (capabilities) ProtocolRoCEEthEncap(uint8) bool { return false }

// ProtocolIWARP reports whether the port speaks iWARP (rdma_protocol_iwarp).
func (capabilities) ProtocolIWARP(uint8) bool { return false }

// ProtocolUSNIC reports whether the port speaks usNIC (rdma_protocol_usnic).
func (capabilities) ProtocolUSNIC(uint8) bool { return false }

// ProtocolRawPacket reports whether the port has raw packets (rdma_protocol_raw_packet).
func (capabilities) ProtocolRawPacket(uint8) bool { return false }

// CapIBMAD reports whether the port has InfiniBand's management datagrams (rdma_cap_ib_mad): it has
// those of QP 1.
func (c capabilities) CapIBMAD(port uint8) bool { return c.IsPortValid(port) }

// CapOPAMAD reports whether the port has Omni-Path's management datagrams (rdma_cap_opa_mad).
func (capabilities) CapOPAMAD(uint8) bool { return false }

// CapIBSMI reports whether the port has a subnet management interface, QP 0 (rdma_cap_ib_smi).
func (capabilities) CapIBSMI(uint8) bool { return false }

// CapIBCM reports whether connections are made by InfiniBand's communication manager (rdma_cap_ib_cm).
func (c capabilities) CapIBCM(port uint8) bool { return c.IsPortValid(port) }

// CapIWCM reports whether connections are made by iWARP's (rdma_cap_iw_cm).
func (capabilities) CapIWCM(uint8) bool { return false }

// CapIBSA reports whether there is a subnet administrator to ask (rdma_cap_ib_sa).
func (capabilities) CapIBSA(uint8) bool { return false }

// CapIBMcast reports whether multicast groups are joined by the subnet administrator
// (rdma_cap_ib_mcast). On Ethernet they are joined by IGMP and MLD.
func (capabilities) CapIBMcast(uint8) bool { return false }

// CapAFIB reports whether the connection manager takes AF_IB addresses, which are GIDs
// (rdma_cap_af_ib).
func (c capabilities) CapAFIB(port uint8) bool { return c.IsPortValid(port) }

// CapEthAH reports whether address handles name Ethernet addresses (rdma_cap_eth_ah).
func (c capabilities) CapEthAH(port uint8) bool { return c.IsPortValid(port) }

// CapOPAAH reports whether address handles take Omni-Path's extended addresses (rdma_cap_opa_ah).
func (capabilities) CapOPAAH(uint8) bool { return false }

// MaxMADSize is the length of a management datagram, in bytes, with its headers (rdma_max_mad_size);
// 0 where there are none.
func (c capabilities) MaxMADSize(port uint8) int {
	if !c.CapIBMAD(port) {
		return 0
	}
	return madSize
}

// CapRoCEGIDTable reports whether the port's GIDs follow the interface's addresses
// (rdma_cap_roce_gid_table).
func (c capabilities) CapRoCEGIDTable(port uint8) bool { return c.IsPortValid(port) }
