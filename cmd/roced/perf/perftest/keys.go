// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Keys is the address of a side's queue pair, in the text format of perftest's KEY_PRINT_FMT_GID:
//
//	0000:0001:000011:f591df:00001234:000055d8fe2c0000:00:…:0a:42:00:02:00000000: NUL
//	LID  out  QPN    PSN    R_Key    address          GID, 16 bytes    SRQ
//
// A member of a group sends the group instead, with QPN ffffff. The fields out, R_Key and address
// are for connections; with datagrams they are returned unchanged.
type Keys struct {
	meet.Destination
	OutReads uint16 // maximum number of outstanding reads and atomics, in each direction
	RKey     uint32
	Address  uint64 // memory that the peer may write and read
	SRQ      uint32
}

const keysLen = 108

// fields contains the widths of the fields, in digits. A colon ends each.
var fields = [...]int{4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8}

// The indexes of the fields.
const (
	fieldLID = iota
	fieldOutReads
	fieldQPN
	fieldPSN
	fieldRKey
	fieldAddress
	fieldGID
	fieldSRQ = fieldGID + 16
)

// message returns the text.
func (k Keys) message() []byte {
	m := fmt.Appendf(nil, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, uint32(k.QPN), uint32(k.PSN), k.RKey, k.Address)
	for _, b := range k.GID {
		m = fmt.Appendf(m, "%02x:", b)
	}
	return fmt.Appendf(m, "%08x:\x00", k.SRQ)
}

// parseKeys parses the text. A field of the wrong width, or any other text, is EBADMSG.
func parseKeys(m []byte) (k Keys, err error) {
	values, ok := values(m)
	if !ok {
		return k, fmt.Errorf("%q is not an address of perftest %s: %w", m, Version, unix.EBADMSG)
	}
	k.LID, k.OutReads = uint16(values[fieldLID]), uint16(values[fieldOutReads])
	k.QPN, k.PSN = verbs.QPN(values[fieldQPN]), verbs.PSN(values[fieldPSN])
	k.RKey, k.Address, k.SRQ = uint32(values[fieldRKey]), values[fieldAddress], uint32(values[fieldSRQ])
	for i := range k.GID {
		k.GID[i] = byte(values[fieldGID+i])
	}
	return k, nil
}

func values(m []byte) (values [len(fields)]uint64, ok bool) {
	if len(m) != keysLen || m[keysLen-1] != 0 {
		return values, false
	}
	for i, width := range fields {
		if values[i], ok = meet.HexNumber(m[:width]); !ok || m[width] != ':' {
			return values, false
		}
		m = m[width+1:]
	}
	return values, true
}

// check returns EBADMSG for an address that cannot receive messages.
func (k *Keys) check() error {
	if k.IsGroup() {
		return nil
	}
	return k.Destination.Check()
}

// IsGroup reports whether the keys are of a group instead of a queue pair.
func (k *Keys) IsGroup() bool { return k.QPN == verbs.MulticastQPN && k.GID.IsMulticast() }
