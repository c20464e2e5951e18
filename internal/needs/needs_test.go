// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// skipped is a test that records the reason for skipping it, and continues.
type skipped struct {
	testing.TB
	reason string
}

func (s *skipped) Helper() {}

func (s *skipped) Skip(args ...any) { s.reason, _ = args[0].(string) }

// TestTools: the reason names the missing tools and the package.
func TestTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := &skipped{TB: t}
	Tools(s, "tshark")
	if !strings.HasPrefix(s.reason, "needs tools: missing tshark (Debian: apt-get install ") {
		t.Errorf("%q", s.reason)
	}
}

// childVariable makes a child print the privileges that it lacks.
const childVariable = "ROCED_NEEDS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Stdout.WriteString(lacking())
		return
	}
	os.Exit(m.Run())
}

// TestRoot: root of the machine meets the requirement. An unprivileged user, root of a user namespace, and root without
// a capability do not, and the reason states the missing part.
func TestRoot(t *testing.T) {
	Root(t)
	for want, attr := range map[string]syscall.SysProcAttr{
		"":                  {},
		"run as root":       {Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
		"user namespace":    {Cloneflags: unix.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}}},
		"root with CAP_BPF": {},
	} {
		if attr.Cloneflags != 0 && userNamespace() != nil {
			continue
		}
		child := exec.Command("/proc/self/exe")
		child.Env, child.SysProcAttr = append(os.Environ(), childVariable+"=1"), &attr
		ended := make(chan error)
		var said []byte
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends
			var err error
			if strings.Contains(want, "CAP_BPF") {
				err = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_BPF, 0, 0, 0)
			}
			if err == nil {
				said, err = child.Output()
			}
			ended <- err
		}()
		if err := <-ended; err != nil || !strings.Contains(string(said), want) || want == "" && len(said) > 0 {
			t.Errorf("%q, %v; want %q", said, err, want)
		}
	}
}

// TestUserNamespace: the check does not change the user of the test.
func TestUserNamespace(t *testing.T) {
	user := os.Geteuid()
	s := &skipped{TB: t}
	UserNamespace(s)
	if os.Geteuid() != user || s.reason != "" && !strings.HasPrefix(s.reason, "needs user namespaces for ordinary users: ") {
		t.Errorf("user %d, now %d: %q", user, os.Geteuid(), s.reason)
	}
}
