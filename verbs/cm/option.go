package cm

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// Option names what SetOption sets (RDMA_OPTION_ID_*). Values: OptionTOS, OptionReuseAddr, OptionAFOnly or
// OptionAckTimeout.
type Option = ib.IDOption

// The options of ids.
const (
	OptionTOS        = ib.IDOptionTOS        // SetServiceType
	OptionReuseAddr  = ib.IDOptionReuseAddr  // SetReuseAddr: 0 or 1
	OptionAFOnly     = ib.IDOptionAFOnly     // SetAFOnly: 0 or 1
	OptionAckTimeout = ib.IDOptionAckTimeout // SetAckTimeout
)

// OptionLevel is what an option is one of (the level of rdma_set_option): OptionLevelID. RDMA_OPTION_IB's only option
// is a call: ID.SetIBPath.
type OptionLevel uint32

// OptionLevelID is that of options of ids (RDMA_OPTION_ID).
const OptionLevelID OptionLevel = 0

// SetOption sets an option by its name (rdma_set_option). Each has a call too, which says what it does. An option that
// there is none of is verbs.ErrUnsupported, and ENOSYS as the kernel has it.
func (i *ID) SetOption(level OptionLevel, option Option, value uint32) error {
	if i == nil {
		return fmt.Errorf("set an option: %w", errNil)
	}
	if level != OptionLevelID || option > OptionAckTimeout {
		return fmt.Errorf("set an option: %w: %w: option %d of level %d", verbs.ErrUnsupported, unix.ENOSYS, option, level)
	}
	if value > 0 && (option == OptionReuseAddr || option == OptionAFOnly) {
		value = 1
	}
	return i.set(fmt.Sprintf("set option %d", option), option, value)
}

// SetAckTimeout sets how long the queue pair of a reliable connection waits for an answer before it sends again: a
// code, which verbs.TimeoutCode gives for a time (the kernel's rdma_set_ack_timeout, RDMA_OPTION_ID_ACK_TIMEOUT). The
// peer's does too if Connect comes after. 0 is for ever. Without it, it is 19, which is 2.1 s.
//
// verbs.ErrInvalid for a code above 31, and of ids that are not for reliable connections.
func (i *ID) SetAckTimeout(code uint8) error {
	if i == nil {
		return fmt.Errorf("set the ACK timeout: %w", errNil)
	}
	return i.set("set the ACK timeout", OptionAckTimeout, uint32(code))
}
