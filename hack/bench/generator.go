// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/roced/roced/hack/bench/harness"
	"golang.org/x/sys/unix"
)

// generate sends frames with a redirecting XDP program, which BPF_PROG_TEST_RUN runs on live frames. This is the
// fastest source of frames on a host with two processors.
func generate(j harness.Job) (harness.Result, error) {
	index, err := linkIndex()
	if err != nil {
		return harness.Result{}, err
	}
	// veth accepts redirected frames only if the interface itself has an XDP program.
	if _, err := rawSocket(j); err != nil {
		return harness.Result{}, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}})
	if err != nil {
		return harness.Result{}, err
	}
	frame := rawFrame(j)
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	// The speed of the core changes, so it is measured before and after. The setup and cleanup of a run take the kernel
	// 25 ms, so there is one long run.
	const liveFrames = 1 << 1
	before := coreSpeed()
	for start := time.Now(); time.Since(start) < j.Duration/2; { // again if a signal interrupted the run
		repeat := uint32(framesPerSecond * j.Duration.Seconds())
		_, err := program.Run(&ebpf.RunOptions{Data: frame, Repeat: repeat, Flags: liveFrames, BatchSize: 64})
		if err != nil && !errors.Is(err, unix.EINTR) {
			return harness.Result{}, err
		}
	}
	return harness.Result{Speed: (before + coreSpeed()) / 2}, nil
}

// framesPerSecond is the approximate rate of a core.
const framesPerSecond = 3 << 20
