// SPDX-License-Identifier: Apache-2.0

package job

import (
	"io"
	"os/exec"
	"runtime"
	"syscall"
)

// Program starts a program that is killed if this process dies. within calls the start function, for example in a
// namespace (Namespace.Do).
//
// The kernel kills the program when the thread that started it ends (PR_SET_PDEATHSIG), so the thread is kept as long
// as the program runs.
func Program(cmd *exec.Cmd, within func(start func() error) error) *Job {
	return Start(func(out io.Writer) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.Stdout, cmd.Stderr = out, out
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		if err := within(cmd.Start); err != nil {
			return err
		}
		return cmd.Wait()
	})
}
