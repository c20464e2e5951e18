// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestCountersOfAllCPUs counts one frame on each CPU.
func TestCountersOfAllCPUs(t *testing.T) {
	h := newHost(t, untagged())
	runtime.LockOSThread() // without unlock, so that the thread with its affinity ends
	var allowed unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &allowed))
	for cpu := range ebpf.MustPossibleCPU() {
		if !allowed.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		must(t, unix.SchedSetaffinity(0, &one))
		h.run(t, ebpf.RunOptions{Data: toOwn4().bytes()})
	}
	if got, want := h.counters(t), (Counters{Redirected: uint64(allowed.Count())}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
