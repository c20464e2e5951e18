// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/roced/roced/verbs"
)

// Addr is a message's destination or source: a queue pair at an IP address, or a group. It is
// comparable and a net.Addr. ParseAddr reads its text; addresses with the same text are equal.
//
//	10.0.0.2:0x00001a                    a queue pair, with the sender's Q_Key
//	[fd00::2]:0x00001a,qkey=0x11111111   one with a Q_Key, as Endpoint.LocalAddr and Message.From are
//	239.1.2.3                            a group
type Addr struct {
	GID verbs.GID
	QPN verbs.QPN
	// QKey is the Options.QKey of the other endpoint; 0 means this endpoint's QKey.
	QKey verbs.QKey
}

// Group returns the address of a group whose members have verbs.UDPQKey. An address that is not
// multicast is refused when the result is used.
func Group(group netip.Addr) Addr {
	return Addr{GID: verbs.GIDFromAddr(group), QPN: verbs.MulticastQPN, QKey: verbs.UDPQKey}
}

// IP returns the IP address.
func (a Addr) IP() netip.Addr { return a.GID.Addr() }

// IsGroup reports whether the address is that of a group.
func (a Addr) IsGroup() bool { return a.GID.IsMulticast() }

// isNoGroup reports whether Group made the address from one that is not multicast.
func (a *Addr) isNoGroup() bool { return a.QPN == verbs.MulticastQPN && !a.GID.IsMulticast() }

// noGroup returns the error for such an address.
func (a *Addr) noGroup() error {
	return fmt.Errorf("%w: %v is not a multicast address (224.0.0.0/4 or ff00::/8); the address of a queue pair needs a number", verbs.ErrInvalid, a.IP())
}

// IsZero reports whether the address is unset.
func (a Addr) IsZero() bool { return a == Addr{} }

// Network returns "roce".
func (a Addr) Network() string { return "roce" }

// qkeyMark precedes the Q_Key in an address's text.
const qkeyMark = ",qkey="

// String returns the address's text, which ParseAddr reads.
func (a Addr) String() string {
	text := a.IP().String()
	if a.QPN != verbs.MulticastQPN || !a.IsGroup() {
		if !a.IP().Is4() {
			text = "[" + text + "]"
		}
		text += ":" + a.QPN.String()
	}
	if a.QKey != 0 {
		text += qkeyMark + a.QKey.String()
	}
	return text
}

// ParseAddr reads the text of an address. Numbers may be decimal or hexadecimal.
func ParseAddr(text string) (Addr, error) {
	a, err := parseAddr(text)
	if err != nil {
		return Addr{}, fmt.Errorf("address %q: %w; examples: 10.0.0.2:0x00001a (queue pair), 239.1.2.3 (group)", text, err)
	}
	return a, nil
}

func parseAddr(text string) (Addr, error) {
	var a Addr
	place, key, has := strings.Cut(text, qkeyMark)
	if has {
		number, err := parseNumber("Q_Key", key, 32)
		if err != nil {
			return a, err
		}
		a.QKey = verbs.QKey(number)
	}
	if group, err := netip.ParseAddr(place); err == nil {
		a.GID, a.QPN = verbs.GIDFromAddr(group), verbs.MulticastQPN
		if !a.IsGroup() {
			return a, fmt.Errorf("%w: the queue pair number is missing", verbs.ErrInvalid)
		}
		return a, nil
	}
	return a, a.parsePlace(place)
}

// parsePlace reads IP:QPN, with brackets around IPv6.
func (a *Addr) parsePlace(place string) error {
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return fmt.Errorf("%w: neither IP:QPN nor a group's IP", verbs.ErrInvalid)
	}
	host, brackets := place[:colon], false
	if inner, opened := strings.CutPrefix(host, "["); opened {
		host, brackets = strings.CutSuffix(inner, "]")
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Is6() != brackets || brackets != strings.HasPrefix(place, "[") {
		return fmt.Errorf("%w: %q is not an IP address (IPv6 needs brackets)", verbs.ErrInvalid, place[:colon])
	}
	number, err := parseNumber("queue pair number", place[colon+1:], 24)
	if err != nil {
		return err
	}
	a.GID, a.QPN = verbs.GIDFromAddr(ip), verbs.QPN(number)
	return nil
}

func parseNumber(what, text string, bits int) (uint64, error) {
	number, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a %s of %d bits", verbs.ErrInvalid, text, what, bits)
	}
	return number, nil
}

// MarshalText returns the address's text.
func (a Addr) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the address's text.
func (a *Addr) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddr(string(text))
	return err
}
