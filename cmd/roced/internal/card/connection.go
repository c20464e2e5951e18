// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// AckTimeout is the local ACK timeout of ibv_rc_pingpong and perftest. Only tests on slow machines change it.
var AckTimeout = 67 * time.Millisecond // code 14

// Further connection attributes of these programs.
const (
	connectionRetries  = 7
	connectionRNRTimer = 640 * time.Microsecond // code 12
	foreverRNR         = 7
)

// ConnectionAttr returns the attributes of a connection from a GID table entry to a peer, with one
// outstanding read or atomic. The caller sets the queue pair numbers, PSNs and path MTU.
func ConnectionAttr(source verbs.GIDEntry, peer verbs.GID) verbs.QPAttr {
	return verbs.QPAttr{
		AHAttr: verbs.AHAttr{Port: Port, GRH: verbs.GlobalRoute{DGID: peer, SGIDIndex: source.Index}},
		Port:   Port, AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite, MaxRDAtomic: 1, MaxDestRDAtomic: 1,
		MinRNRTimer: verbs.RNRTimerCode(connectionRNRTimer), Timeout: verbs.TimeoutCode(AckTimeout),
		RetryCnt: connectionRetries, RNRRetry: foreverRNR,
	}
}

// ParseMTU converts a path MTU in bytes.
func ParseMTU(bytes int) (verbs.MTU, error) {
	for mtu := verbs.MTU256; mtu <= verbs.MTU4096; mtu++ {
		if mtu.Bytes() == bytes {
			return mtu, nil
		}
	}
	return 0, errno.New(fmt.Sprintf("--mtu must be 256, 512, 1024, 2048 or 4096: %d", bytes), unix.EINVAL)
}

// Completions waits for completions, sleeping or spinning. It returns the error of the first failed
// completion; those after it were flushed.
func (d *Device) Completions(ctx context.Context, cq *verbs.CQ, sleep bool, wcs []verbs.WC) (n int, err error) {
	if sleep {
		n, err = cq.Wait(ctx, wcs)
	}
	for !sleep && n == 0 && err == nil {
		if n, err = cq.Poll(wcs); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	for i := 0; i < n && err == nil; i++ {
		err = wcs[i].Err()
	}
	if errors.Is(err, unix.EMSGSIZE) { // of a connection, whose messages may exceed the port's MTU
		return n, fmt.Errorf("%w: %w", errSizes, err)
	}
	return n, d.explain(err)
}
