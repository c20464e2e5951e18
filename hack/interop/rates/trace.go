// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// traceEvents contains the kernel events to record: scheduling, wake-ups, system calls, and the card's interrupts and
// packets.
const traceEvents = "sched/sched_switch sched/sched_waking irq/irq_handler_entry irq/softirq_entry irq/softirq_exit " +
	"napi/napi_poll net/net_dev_start_xmit xdp/xdp_redirect raw_syscalls/sys_enter raw_syscalls/sys_exit"

// traced calls measure while the left machine's kernel records events (ftrace), and writes the last ones to a file.
// Tracing slows everything down, so only the order and relative times are meaningful.
func (l *testbed) traced(ctx context.Context, name string, measure func() error) error {
	start := "mount -t tracefs t /sys/kernel/tracing 2>/dev/null; cd /sys/kernel/tracing && echo 4096 >buffer_size_kb && echo >trace && " +
		"for e in " + traceEvents + "; do echo 1 >events/$e/enable || exit 1; done; echo 1 >tracing_on"
	if said, err := l.left.Run(ctx, start); err != nil {
		return fmt.Errorf("trace: %w: %s", err, said)
	}
	measured := measure()
	said, err := l.left.Run(ctx, "cd /sys/kernel/tracing && echo 0 >tracing_on && echo 0 >events/enable && tail -n 6000 trace")
	if measured != nil || err != nil {
		return fmt.Errorf("trace: %w, %w", measured, err)
	}
	return os.WriteFile(filepath.Join(l.options.traces, name+".trace"), []byte(said), 0o644)
}
