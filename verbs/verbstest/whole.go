package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
)

// isWhole fails the test if a required field of the pairs is empty. The outer test ends when the
// inner one has, though newPair may call t.Parallel.
func isWhole(t *testing.T, newPair func(t *testing.T) Pair) bool {
	t.Helper()
	return t.Run("pair", func(t *testing.T) {
		t.Run("whole", func(t *testing.T) {
			pair := newPair(t)
			if field := pair.empty(); field != "" {
				t.Fatalf("verbstest: Pair.%s is empty; set it in newPair", field)
			}
		})
	})
}

// empty names a required field that is empty, "" if there is none.
func (p *Pair) empty() string {
	for _, end := range []struct {
		name string
		*End
	}{{"A.", &p.A}, {"B.", &p.B}} {
		if field := end.empty(); field != "" {
			return end.name + field
		}
	}
	if !p.Unreachable.IsValid() {
		return "Unreachable"
	}
	return ""
}

func (e *End) empty() string {
	switch {
	case e.Provider == nil:
		return "Provider"
	case e.IPv4 == netip.Addr{}:
		return "IPv4"
	case e.IPv6 == netip.Addr{}:
		return "IPv6"
	case e.LinkLocal == netip.Addr{}:
		return "LinkLocal"
	case e.MAC == verbs.MAC{}:
		return "MAC"
	}
	return ""
}
