package nic

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error is the one that is wanted, and says what it should.
func refused(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// logged is a log, for tests to look at.
type logged struct{ text bytes.Buffer }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&l.text, nil)) }

func (l *logged) says(text string) bool { return strings.Contains(l.text.String(), text) }

func attrs(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}
