// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// Option is an option of SetOption (RDMA_OPTION_ID_*). Values: OptionTOS, OptionReuseAddr, OptionAFOnly or
// OptionAckTimeout.
type Option = ib.IDOption

// The options of ids.
const (
	OptionTOS        = ib.IDOptionTOS        // SetServiceType
	OptionReuseAddr  = ib.IDOptionReuseAddr  // SetReuseAddr: 0 or 1
	OptionAFOnly     = ib.IDOptionAFOnly     // SetAFOnly: 0 or 1
	OptionAckTimeout = ib.IDOptionAckTimeout // SetAckTimeout
)

// OptionLevel is the level of an option (the level of rdma_set_option): OptionLevelID. RDMA_OPTION_IB's only option is
// the call ID.SetIBPath.
type OptionLevel uint32

// OptionLevelID is the level of options of ids (RDMA_OPTION_ID).
const OptionLevelID OptionLevel = 0

// SetOption sets an option by its name (rdma_set_option). Each option also has its own method, which documents it. An
// unknown option is verbs.ErrUnsupported, and ENOSYS as in the kernel.
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

// SetAckTimeout sets the local ACK timeout of a reliable connection's queue pair: a code, which verbs.TimeoutCode
// returns for a duration (the kernel's rdma_set_ack_timeout, RDMA_OPTION_ID_ACK_TIMEOUT). If it is called before
// Connect, the peer uses it too. 0 means forever. The default is 19, which is 2.1 s.
//
// verbs.ErrInvalid for a code above 31, and for ids of other types than reliable connections.
func (i *ID) SetAckTimeout(code uint8) error {
	if i == nil {
		return fmt.Errorf("set the ACK timeout: %w", errNil)
	}
	return i.set("set the ACK timeout", OptionAckTimeout, uint32(code))
}
