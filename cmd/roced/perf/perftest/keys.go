package perftest

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Keys are a side's queue pair, in the text of perftest's KEY_PRINT_FMT_GID:
//
//	0000:0001:000011:f591df:00001234:000055d8fe2c0000:00:…:0a:42:00:02:00000000: NUL
//	LID  out  QPN    PSN    R_Key    address          GID, 16 bytes    SRQ
//
// A group's member gives the group instead, with QPN ffffff. What datagrams have no
// use for is kept as it is: out, R_Key and address are of connections.
type Keys struct {
	meet.Destination
	OutReads uint16 // reads and atomics that it has outstanding, and answers, at most
	RKey     uint32
	Address  uint64 // where the peer may write and read
	SRQ      uint32
}

const keysLen = 108

// fields are the widths of the fields, in digits. A colon ends each.
var fields = [...]int{4, 4, 6, 6, 8, 16, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8}

// The fields by number.
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

// message is the text.
func (k Keys) message() []byte {
	m := fmt.Appendf(nil, "%04x:%04x:%06x:%06x:%08x:%016x:", k.LID, k.OutReads, uint32(k.QPN), uint32(k.PSN), k.RKey, k.Address)
	for _, b := range k.GID {
		m = fmt.Appendf(m, "%02x:", b)
	}
	return fmt.Appendf(m, "%08x:\x00", k.SRQ)
}

// parseKeys is strict: each field has its width. Any other text is EBADMSG.
func parseKeys(m []byte) (k Keys, err error) {
	values, ok := values(m)
	if !ok {
		return k, fmt.Errorf("%q is not an address as perftest %s sends it: %w", m, Version, unix.EBADMSG)
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

// check rejects what no message can be sent to, neither a queue pair nor a group. It is EBADMSG.
func (k *Keys) check() error {
	if k.IsGroup() {
		return nil
	}
	return k.Destination.Check()
}

// IsGroup says whether they are of a group and not of a queue pair.
func (k *Keys) IsGroup() bool { return k.QPN == verbs.MulticastQPN && k.GID.IsMulticast() }
