// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Destination is the address that two programs exchange over TCP before they can send datagrams, in the text
// format of rdma-core's ibv_ud_pingpong (libibverbs/examples):
//
//	0000:00004a:000000:00000000000000000000ffff0a4d0001 NUL
//	LID  QPN    PSN    GID, byte by byte
type Destination struct {
	LID uint16 // 0 on Ethernet
	QPN verbs.QPN
	PSN verbs.PSN // of the first packet
	GID verbs.GID
}

// Offsets of the fields.
const (
	qpnOffset      = 5
	psnOffset      = 12
	gidOffset      = 19
	nulOffset      = 51
	destinationLen = 52
)

// Message returns the text form.
func (d Destination) Message() []byte {
	return fmt.Appendf(nil, "%04x:%06x:%06x:%x\x00", d.LID, uint32(d.QPN), uint32(d.PSN), d.GID[:])
}

// String returns the form that ibv_ud_pingpong prints.
func (d Destination) String() string {
	return fmt.Sprintf("LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %v", d.LID, uint32(d.QPN), uint32(d.PSN), d.GID)
}

// Addr returns the destination address of messages.
func (d Destination) Addr() ud.Addr { return ud.Addr{GID: d.GID, QPN: d.QPN} }

// parseDestination parses the text form. Fields must have their exact width; other text is EBADMSG.
func parseDestination(m []byte) (d Destination, err error) {
	bad := fmt.Errorf("%q is not an address in the format of ibv_ud_pingpong: %w", m, unix.EBADMSG)
	if len(m) != destinationLen || m[qpnOffset-1] != ':' || m[psnOffset-1] != ':' || m[gidOffset-1] != ':' || m[nulOffset] != 0 {
		return d, bad
	}
	lid, lidOK := HexNumber(m[:qpnOffset-1])
	qpn, qpnOK := HexNumber(m[qpnOffset : psnOffset-1])
	psn, psnOK := HexNumber(m[psnOffset : gidOffset-1])
	_, err = hex.Decode(d.GID[:], m[gidOffset:nulOffset])
	if !lidOK || !qpnOK || !psnOK || err != nil {
		return Destination{}, bad
	}
	d.LID, d.QPN, d.PSN = uint16(lid), verbs.QPN(qpn), verbs.PSN(psn)
	return d, nil
}

// HexNumber parses an even number of digits, at most 16. Signs, prefixes and underscores are invalid.
func HexNumber(digits []byte) (uint64, bool) {
	var number [8]byte
	_, err := hex.Decode(number[len(number)-len(digits)/2:], digits)
	return binary.BigEndian.Uint64(number[:]), err == nil
}

// Check returns EBADMSG if datagrams cannot be sent to d.
func (d Destination) Check() error {
	what := ""
	switch {
	case d.GID.IsZero():
		what = "no GID; start the peer with -g INDEX (ibv_devinfo -v lists GIDs)"
	case d.GID.IsMulticast() || d.QPN == verbs.MulticastQPN:
		what = "a group address instead of its own"
	case d.QPN <= 1:
		what = fmt.Sprintf("QP %v, which does not receive messages", d.QPN)
	default:
		return nil
	}
	return fmt.Errorf("the peer sent %s: %w", what, unix.EBADMSG)
}
