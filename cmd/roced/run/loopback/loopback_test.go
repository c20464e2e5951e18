package loopback

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func newNetwork(t *testing.T, pools, hosts []string) *Network {
	t.Helper()
	o, err := ParseOptions(pools, hosts)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestPoolIsUsedUp: the addresses of hosts with names are not given away, and those of sessions that
// ended are there again.
func TestPoolIsUsedUp(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/30", "fd00::/64"}, []string{"server=10.0.0.2"})
	device := n.Devices()[0]
	var sessions []*hca.Session
	for range 2 {
		s, err := device.NewSession(hca.SessionConfig{})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if _, err := device.NewSession(hca.SessionConfig{}); !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), "--pool") {
		t.Errorf("a host without an address: %v", err)
	}
	for i, want := range []string{"10.0.0.1", "10.0.0.3"} {
		grant, err := sessions[i].QueryGIDTable(verbs.QueryGIDTableRequest{Port: 1})
		if err != nil || grant.Entries[0].GID.Addr().Unmap() != netip.MustParseAddr(want) || len(grant.Entries) != 2 {
			t.Errorf("%+v, %v, want %s", grant, err, want)
		}
	}
	if err := sessions[0].Close(); err != nil {
		t.Error(err)
	}
	for {
		s, err := device.NewSession(hca.SessionConfig{})
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			break
		}
		if !errors.Is(err, verbs.ErrLimit) {
			t.Fatal(err)
		}
	}
	if err := sessions[1].Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusedSession: its addresses and its host are gone.
func TestRefusedSession(t *testing.T) {
	n := newNetwork(t, []string{"10.0.0.0/31"}, nil)
	device := n.Devices()[0]
	for range 3 {
		if _, err := device.NewSession(hca.SessionConfig{Limits: hca.Limits{QPs: -1}}); !errors.Is(err, verbs.ErrInvalid) {
			t.Fatal(err)
		}
	}
	s, err := device.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestNamesOfDevices(t *testing.T) {
	n := newNetwork(t, DefaultPools, []string{"a=10.1.0.1,fd01::1", "b=10.1.0.2"})
	var names []string
	for _, d := range n.Devices() {
		names = append(names, d.Name())
	}
	if got := strings.Join(names, " "); got != "loop a b" {
		t.Error(got)
	}
}
