// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// defaultRNRTimer is that of ibv_rc_pingpong and perftest, 0.64 ms. The kernel's rdma_cm uses code 0, 655.36 ms, which
// delays a peer that sends before a receive is posted. The timer is sent to the peer only in an RNR NAK, so no peer
// depends on it.
var defaultRNRTimer = verbs.RNRTimerCode(640 * time.Microsecond)

// SetMinRNRTimer sets the time that the peer of a connection waits after an RNR NAK before it retransmits: a code,
// which verbs.RNRTimerCode returns for a duration (the kernel's rdma_set_min_rnr_timer). It applies to the queue pair
// of CreateQP, before it is connected, and for a listening id to those of later requests. The default is 0.64 ms. Code
// 0, the default of rdma_cm, is 655.36 ms.
//
// A peer with n RNR retries (ConnParam.RNRRetryCount) fails after n times this duration.
//
// verbs.ErrInvalid for a code above 31, and for ids of other types than reliable connections.
func (i *ID) SetMinRNRTimer(code uint8) error {
	if i == nil {
		return fmt.Errorf("set the RNR timer: %w", errNil)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case len(i.parts) == 0:
		return fmt.Errorf("set the RNR timer: %w: the id", verbs.ErrObjectClosed)
	case verbs.RNRTimerDuration(code) < 0 || i.qpType() != verbs.QPTypeRC:
		return fmt.Errorf("set the RNR timer: %w: code %d for an id of type %v; reliable connections permit codes 0 to 31", verbs.ErrInvalid, code, i.qpType())
	}
	i.minRNRTimer = code
	return nil
}

func (i *ID) rnrTimer() uint8 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.minRNRTimer
}
