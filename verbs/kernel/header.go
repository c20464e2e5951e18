// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// GetRDMAHeaderVersion returns the version of the IP header in the 40 bytes that precede a datagram in its receive
// buffer: 4 or 6, or 0 if it is neither (ib_get_rdma_header_version).
func GetRDMAHeaderVersion(header verbs.GRH) int { return header.IPVersion() }

// GetGIDsFromRDMAHdr returns the sender's and the destination's GID in the 40 bytes that precede a datagram in its
// receive buffer (ib_get_gids_from_rdma_hdr). The type is the completion's NetworkHeader, which is not checked, as in
// the kernel. NetworkIB and NetworkRoCEv1 have their GIDs where IPv6 has them. ErrInvalid for another type or a short
// header.
func GetGIDsFromRDMAHdr(header verbs.GRH, networkType verbs.NetworkType) (sgid, dgid verbs.GID, err error) {
	if len(header) < wire.GRHLen {
		return sgid, dgid, fmt.Errorf("%w: the header has %d bytes, want %d", verbs.ErrInvalid, len(header), wire.GRHLen)
	}
	sgid, dgid, ok := networkType.GIDs(header)
	if !ok {
		return sgid, dgid, fmt.Errorf("%w: network type %d; RoCE v2 uses NetworkIPv4 (2) and NetworkIPv6 (3)", verbs.ErrInvalid, uint8(networkType))
	}
	return sgid, dgid, nil
}
