// SPDX-License-Identifier: Apache-2.0

package kernel

import "github.com/roced/roced/verbs"

// Management and addressing capabilities of a port's protocol (rdma_cap_*). A port uses RoCE v2 with every Provider,
// and the results are those of the kernel for such a port. All are false for a port that does not exist.

const (
	firstPort = 1
	lastPort  = 1
	madSize   = 256 // bytes (IBA 13.4.2)
)

// CapIBSwitch reports whether the device is a switch, whose ports begin at 0 (rdma_cap_ib_switch).
func CapIBSwitch(*verbs.Context) bool { return false }

// StartPort returns the number of the device's first port (rdma_start_port).
func StartPort(*verbs.Context) uint8 { return firstPort }

// EndPort returns the number of the device's last port (rdma_end_port).
func EndPort(*verbs.Context) uint8 { return lastPort }

// IsPortValid reports whether the device has a port with this number (rdma_is_port_valid).
func IsPortValid(_ *verbs.Context, port uint8) bool { return port >= firstPort && port <= lastPort }

// ProtocolRoCE reports whether the port uses any version of RoCE (rdma_protocol_roce).
func ProtocolRoCE(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// ProtocolRoCEUDPEncap reports whether the port uses RoCE v2 (rdma_protocol_roce_udp_encap).
func ProtocolRoCEUDPEncap(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// ProtocolIB reports whether the port uses InfiniBand (rdma_protocol_ib).
func ProtocolIB(*verbs.Context, uint8) bool { return false }

// ProtocolRoCEEthEncap reports whether the port uses RoCE v1 (rdma_protocol_roce_eth_encap).
func ProtocolRoCEEthEncap(*verbs.Context, uint8) bool { return false }

// ProtocolIWARP reports whether the port uses iWARP (rdma_protocol_iwarp).
func ProtocolIWARP(*verbs.Context, uint8) bool { return false }

// ProtocolUSNIC reports whether the port uses usNIC (rdma_protocol_usnic).
func ProtocolUSNIC(*verbs.Context, uint8) bool { return false }

// ProtocolRawPacket reports whether the port supports raw packets (rdma_protocol_raw_packet).
func ProtocolRawPacket(*verbs.Context, uint8) bool { return false }

// CapIBMAD reports whether the port supports InfiniBand management datagrams (rdma_cap_ib_mad): it supports those of QP
// 1.
func CapIBMAD(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// CapOPAMAD reports whether the port supports Omni-Path management datagrams (rdma_cap_opa_mad).
func CapOPAMAD(*verbs.Context, uint8) bool { return false }

// CapIBSMI reports whether the port has a subnet management interface, QP 0 (rdma_cap_ib_smi).
func CapIBSMI(*verbs.Context, uint8) bool { return false }

// CapIBCM reports whether connections are made by InfiniBand's communication manager (rdma_cap_ib_cm).
func CapIBCM(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// CapIWCM reports whether connections are made by iWARP's communication manager (rdma_cap_iw_cm).
func CapIWCM(*verbs.Context, uint8) bool { return false }

// CapIBSA reports whether the network has a subnet administrator (rdma_cap_ib_sa).
func CapIBSA(*verbs.Context, uint8) bool { return false }

// CapIBMcast reports whether multicast groups are joined by the subnet administrator
// (rdma_cap_ib_mcast). On Ethernet they are joined by IGMP and MLD.
func CapIBMcast(*verbs.Context, uint8) bool { return false }

// CapAFIB reports whether the connection manager accepts AF_IB addresses, which are GIDs (rdma_cap_af_ib).
func CapAFIB(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// CapEthAH reports whether address handles contain Ethernet addresses (rdma_cap_eth_ah).
func CapEthAH(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }

// CapOPAAH reports whether address handles accept Omni-Path's extended addresses (rdma_cap_opa_ah).
func CapOPAAH(*verbs.Context, uint8) bool { return false }

// MaxMADSize returns the length of a management datagram in bytes, with its headers (rdma_max_mad_size); 0 for a port
// that does not exist.
func MaxMADSize(c *verbs.Context, port uint8) int {
	if !CapIBMAD(c, port) {
		return 0
	}
	return madSize
}

// CapRoCEGIDTable reports whether the port's GIDs follow the interface's addresses
// (rdma_cap_roce_gid_table).
func CapRoCEGIDTable(c *verbs.Context, port uint8) bool { return IsPortValid(c, port) }
