// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBefore(t *testing.T) {
	for _, row := range []struct {
		release      string
		major, minor int
		want         bool
	}{
		{"5.10.0-32-amd64", 6, 1, true}, {"6.1.0-57-amd64", 6, 1, false}, {"6.1.0-57-amd64", 6, 2, true}, {"6.10.3", 6, 2, false},
		{"7.0.1", 6, 18, false}, {"unknown", 6, 1, false},
	} {
		if got := Before(row.release, row.major, row.minor); got != row.want {
			t.Errorf("%s before %d.%d: %t", row.release, row.major, row.minor, got)
		}
	}
}

// TestExplain: on an old kernel the error states the running and the required release. On a new kernel the error is
// unchanged.
func TestExplain(t *testing.T) {
	const want = "devices: requires Linux 6.1 or newer, but Linux 5.10.0-32-amd64 is running; boot a newer kernel (protocol not available)"
	if err := explain(unix.ENOPROTOOPT, "devices", "5.10.0-32-amd64"); err.Error() != want || !errors.Is(err, unix.ENOPROTOOPT) {
		t.Errorf("%v, want %q", err, want)
	}
	if err := explain(unix.ENOPROTOOPT, "devices", "6.1.0-57-amd64"); err != unix.ENOPROTOOPT {
		t.Error(err)
	}
	if err := explain(unix.ENOMEM, "devices", "5.10.0-32-amd64"); err != unix.ENOMEM {
		t.Error(err)
	}
	if explain(nil, "devices", "5.10.0") != nil || Explain(nil, "devices") != nil {
		t.Error("a nil error became an error")
	}
}

// TestExplainModule: the remedy is modprobe if the module is installed, else to install it.
func TestExplainModule(t *testing.T) {
	list := filepath.Join(t.TempDir(), "6.1.0-57-amd64", "modules.dep")
	if err := os.Mkdir(filepath.Dir(list), 0o755); err != nil {
		t.Fatal(err)
	}
	err := explainModule(unix.EOPNOTSUPP, "veth", list)
	if !strings.Contains(err.Error(), "no module veth; install the package with the modules of Linux 6.1.0-57-amd64") || !errors.Is(err, unix.EOPNOTSUPP) {
		t.Error(err)
	}
	if err := os.WriteFile(list, []byte("kernel/drivers/net/veth.ko.xz:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := explainModule(unix.EOPNOTSUPP, "veth", list); !strings.Contains(err.Error(), "modprobe veth") {
		t.Error(err)
	}
	if err := explainModule(unix.EEXIST, "veth", list); err != unix.EEXIST {
		t.Error(err)
	}
}
