// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/tools"
	"golang.org/x/sys/unix"
)

// Skip skips the test and reports its requirement: a noun phrase, with the remedy.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Skip("needs " + fmt.Sprintf(format, args...))
}

// Tools skips the test unless this machine has all of the tools, named as in [tools.Missing].
func Tools(t testing.TB, names ...string) {
	t.Helper()
	err := tools.Missing(names...)
	if err == nil {
		return
	}
	for _, name := range names {
		if _, known := tools.Package(name); !known && tools.Missing(name) != nil {
			t.Fatalf("%s is not installed and internal/tools has no package for it; add the package", name)
		}
	}
	Skip(t, "tools: %v", err)
}

// Command prepares a program, which is killed when the test ends. It skips the test if the program is
// missing.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	Tools(t, name)
	return exec.CommandContext(t.Context(), name, args...)
}

// UserNamespace skips the test unless ordinary users can create user namespaces, which the kernel refuses in
// a chroot.
func UserNamespace(t testing.TB) {
	t.Helper()
	if err := userNamespace(); err != nil {
		Skip(t, "user namespaces for ordinary users: %v (not in a chroot; sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)", err)
	}
}

// userNamespace creates a user namespace as an ordinary user, for a program that does not exist.
var userNamespace = sync.OnceValue(func() error {
	const nobody = 65534
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends
		if os.Geteuid() == 0 { // for the thread, not for the process
			unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) // reset for the process by the change of user
		}
		attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}}
		_, err := os.StartProcess("/nonexistent", []string{"nonexistent"}, attr)
		result <- err
	}()
	err := <-result
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return errors.Unwrap(err)
})

// TUN skips the test unless the kernel can create TUN and TAP interfaces.
func TUN(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		Skip(t, "TUN interfaces: %v (modprobe tun; in a container --device /dev/net/tun)", err)
	}
	_ = file.Close()
}
