// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// number32 is a 32-bit flag, printed in hexadecimal like keys.
type number32 uint32

func (n *number32) String() string { return fmt.Sprintf("0x%08x", uint32(*n)) }

func (n *number32) Set(text string) error {
	value, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return fmt.Errorf("must be a 32-bit number, such as 0x11111111")
	}
	*n = number32(value)
	return nil
}

func (n *number32) Type() string { return "number" }

// methodFlag is the method of joining.
type methodFlag struct{ hca.MembershipMethod }

func (m *methodFlag) Set(text string) error {
	if m.MembershipMethod = hca.MembershipMethod(text); !slices.Contains(m.Choices(), text) {
		return fmt.Errorf("must be auto, netlink or socket")
	}
	return nil
}

func (m *methodFlag) String() string { return string(cmp.Or(m.MembershipMethod, hca.MembershipAuto)) }

// Choices implements cli.Choices.
func (m *methodFlag) Choices() []string {
	return []string{string(hca.MembershipAuto), string(hca.MembershipNetlink), string(hca.MembershipSocket)}
}

func (m *methodFlag) Type() string { return "method" }

// immediateFlag is the immediate data of sent messages. By default it is the sender's queue pair number, as
// in mckey.
type immediateFlag struct {
	none  bool
	value *number32
}

func (i *immediateFlag) String() string {
	switch {
	case i.none:
		return "none"
	case i.value != nil:
		return i.value.String()
	}
	return "qpn"
}

func (i *immediateFlag) Set(text string) error {
	*i = immediateFlag{none: text == "none"}
	if text == "none" || text == "qpn" {
		return nil
	}
	value := new(number32)
	if err := value.Set(text); err != nil {
		return fmt.Errorf("must be qpn or none, or %w", err)
	}
	i.value = value
	return nil
}

func (i *immediateFlag) Type() string { return "data" }

// of returns the immediate data of messages of a queue pair.
func (i *immediateFlag) of(qpn verbs.QPN) (data uint32, has bool) {
	switch {
	case i.none:
		return 0, false
	case i.value != nil:
		return uint32(*i.value), true
	}
	return uint32(qpn), true
}
