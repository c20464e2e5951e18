package needs

import (
	"os"
	"strings"
	"testing"
)

// skipped is a test that notes the reason why it is skipped, and goes on.
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

// TestRoot: root is not skipped, an ordinary user is.
func TestRoot(t *testing.T) {
	s := &skipped{TB: t}
	Root(s)
	if root := os.Geteuid() == 0; root != (s.reason == "") {
		t.Errorf("as user %d: %q", os.Geteuid(), s.reason)
	}
}

// TestUserNamespace: the test itself stays the user that it is, and has the answer once.
func TestUserNamespace(t *testing.T) {
	user := os.Geteuid()
	s := &skipped{TB: t}
	UserNamespace(s)
	if os.Geteuid() != user || s.reason != "" && !strings.HasPrefix(s.reason, "needs user namespaces for ordinary users: ") {
		t.Errorf("user %d, now %d: %q", user, os.Geteuid(), s.reason)
	}
}
