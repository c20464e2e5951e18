package mcast

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// number32 is a flag of 32 bits, shown in hexadecimal as keys are.
type number32 uint32

func (n *number32) String() string { return fmt.Sprintf("0x%08x", uint32(*n)) }

func (n *number32) Set(text string) error {
	value, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return fmt.Errorf("a number of 32 bits, as 0x11111111")
	}
	*n = number32(value)
	return nil
}

func (n *number32) Type() string { return "number" }

// methodFlag is how the host joins.
type methodFlag struct{ hca.MembershipMethod }

func (m *methodFlag) Set(text string) error {
	if m.MembershipMethod = hca.MembershipMethod(text); !slices.Contains(m.Choices(), text) {
		return fmt.Errorf("auto, netlink or socket")
	}
	return nil
}

func (m *methodFlag) String() string { return string(cmp.Or(m.MembershipMethod, hca.MembershipAuto)) }

// Choices implements cli.Choices.
func (m *methodFlag) Choices() []string {
	return []string{string(hca.MembershipAuto), string(hca.MembershipNetlink), string(hca.MembershipSocket)}
}

func (m *methodFlag) Type() string { return "method" }

// immediateFlag is the immediate data of messages. By default it is the sender's queue pair number,
// as with mckey.
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
		return fmt.Errorf("qpn, none, or %w", err)
	}
	i.value = value
	return nil
}

func (i *immediateFlag) Type() string { return "data" }

// of is the data of a sender's messages, if they have any.
func (i *immediateFlag) of(qpn verbs.QPN) (data uint32, has bool) {
	switch {
	case i.none:
		return 0, false
	case i.value != nil:
		return uint32(*i.value), true
	}
	return uint32(qpn), true
}
