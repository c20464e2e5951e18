package main

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// generate has XDP itself send frames into the interface: a program that redirects,
// run by BPF_PROG_TEST_RUN on live frames. Nothing on a host with two processors
// makes frames faster.
func generate(j job) (result, error) {
	index, err := linkIndex()
	if err != nil {
		return result{}, err
	}
	// veth takes redirected frames only from a side that has a program itself.
	if _, err := rawSocket(j); err != nil {
		return result{}, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}})
	if err != nil {
		return result{}, err
	}
	frame := rawFrame(j)
	if err := announce(endpoint{}); err != nil {
		return result{}, err
	}
	// Setting a run up takes the kernel 25 ms: few long ones, then, not many short.
	const liveFrames, repeat = 1 << 1, 1 << 20
	for start := time.Now(); time.Since(start) < j.Duration; {
		_, err := program.Run(&ebpf.RunOptions{Data: frame, Repeat: repeat, Flags: liveFrames, BatchSize: 64})
		if err != nil && !errors.Is(err, unix.EINTR) {
			return result{}, err
		}
	}
	return result{}, nil
}
