package verbs

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
)

// GetRDMAHeaderVersion says which IP header is in the 40 bytes at the start of a datagram's receive
// buffer: 4 or 6, or 0 if it is neither (ib_get_rdma_header_version).
func GetRDMAHeaderVersion(header GRH) int { return header.IPVersion() }

// GetGIDsFromRDMAHdr gives the sender's and the destination's GID in the 40 bytes at the start of a
// datagram's receive buffer (ib_get_gids_from_rdma_hdr). The type is the completion's NetworkHeader;
// it is believed, as in the kernel. NetworkIB and NetworkRoCEv1 have their GIDs where IPv6 has them. ErrInvalid for
// another type or fewer bytes.
func GetGIDsFromRDMAHdr(header GRH, networkType NetworkType) (sgid, dgid GID, err error) {
	if len(header) < wire.GRHLen {
		return sgid, dgid, fmt.Errorf("%w: a header of %d bytes; it has to have %d", ErrInvalid, len(header), wire.GRHLen)
	}
	switch networkType {
	case NetworkIPv4: // at the end: source and destination are its last 8 bytes
		source, dest := [4]byte(header[wire.GRHLen-8:]), [4]byte(header[wire.GRHLen-4:])
		return GIDFromAddr(netip.AddrFrom4(source)), GIDFromAddr(netip.AddrFrom4(dest)), nil
	case NetworkIPv6, NetworkIB, NetworkRoCEv1:
		return GID(header[8:24]), GID(header[24:40]), nil
	}
	return sgid, dgid, fmt.Errorf("%w: network type %d; RoCE v2 has NetworkIPv4 and NetworkIPv6, of 0 to 3", ErrInvalid, uint8(networkType))
}
