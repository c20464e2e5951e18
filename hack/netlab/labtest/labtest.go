package labtest

import (
	"os"
	"testing"

	"github.com/roced/roced/hack/netlab"
)

// New makes a namespace that is removed when the test ends. It skips the test
// unless it runs as root.
func New(t testing.TB, prefix string) *netlab.Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ns, err := netlab.New(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// PairLab is two hosts on one wire. The link of each is called "eth0".
type PairLab struct {
	A, B *netlab.Namespace
}

// Pair makes two namespaces joined by a veth pair; see the picture above.
func Pair(t testing.TB, options ...netlab.VethOption) *PairLab {
	t.Helper()
	lab := &PairLab{A: New(t, "labtest-a"), B: New(t, "labtest-b")}
	if err := netlab.Veth(lab.A, lab.B, "eth0", "eth0", options...); err != nil {
		t.Fatal(err)
	}
	addAddresses(t, lab.A, "10.77.0.1/24", "fd77::1/64")
	addAddresses(t, lab.B, "10.77.0.2/24", "fd77::2/64")
	return lab
}

func addAddresses(t testing.TB, ns *netlab.Namespace, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		if err := ns.AddAddress("eth0", address); err != nil {
			t.Fatal(err)
		}
	}
}
