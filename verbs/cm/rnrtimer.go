package cm

import (
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// defaultRNRTimer is that of ibv_rc_pingpong and perftest, 0.64 ms. The kernel's rdma_cm has 0, which is
// 655.36 ms: a peer that sends before a receive is posted stands still for so long. A connection does not show
// the timer to the peer but in that case, so that none depends on it.
var defaultRNRTimer = verbs.RNRTimerCode(640 * time.Microsecond)

// SetMinRNRTimer sets how long the peer of a connection waits that has found no receive, before it sends again:
// a code, which verbs.RNRTimerCode gives for a time (the kernel's rdma_set_min_rnr_timer). It is for the queue
// pair that CreateQP makes, before it is connected, and of an id that listens for those of requests that come
// from then on. A new id has 0.64 ms. Code 0, which rdma_cm has, is 655.36 ms.
//
// A peer that is told to try n times (ConnParam.RNRRetryCount) fails after n times as long.
//
// verbs.ErrInvalid for a code above 31, and of ids that are not for reliable connections.
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
		return fmt.Errorf("set the RNR timer: %w: code %d, of an id for %v; reliable connections have codes 0 to 31", verbs.ErrInvalid, code, i.qpType())
	}
	i.minRNRTimer = code
	return nil
}

func (i *ID) rnrTimer() uint8 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.minRNRTimer
}
