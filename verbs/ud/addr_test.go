// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

func addr(ip string, number verbs.QPN, key verbs.QKey) ud.Addr {
	return ud.Addr{GID: verbs.GIDFromAddr(netip.MustParseAddr(ip)), QPN: number, QKey: key}
}

func TestAddrAsText(t *testing.T) {
	for text, want := range map[string]ud.Addr{
		"10.0.0.2:0x00001a":                  addr("10.0.0.2", 0x1a, 0),
		"10.0.0.2:0x00001a,qkey=0x01234567":  addr("10.0.0.2", 0x1a, verbs.UDPQKey),
		"10.0.0.2:0x00001a,qkey=0x11111111":  addr("10.0.0.2", 0x1a, 0x11111111),
		"[fd00::2]:0x000002":                 addr("fd00::2", 2, 0),
		"[fe80::2]:0xfffffe,qkey=0x00000007": addr("fe80::2", 0xfffffe, 7),
		"239.1.2.3":                          addr("239.1.2.3", verbs.MulticastQPN, 0),
		"239.1.2.3,qkey=0x01234567":          ud.Group(group),
		"ff0e::1,qkey=0x80000001":            addr("ff0e::1", verbs.MulticastQPN, 0x80000001),
		"239.1.2.3:0x000005":                 addr("239.1.2.3", 5, 0), // used by no queue pair, but kept unchanged
	} {
		if got, err := ud.ParseAddr(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
		if want.String() != text {
			t.Errorf("%+v: got text %q, want %q", want, want, text)
		}
	}
	if got, err := ud.ParseAddr("10.0.0.2:26,qkey=286331153"); err != nil || got != addr("10.0.0.2", 26, 0x11111111) {
		t.Errorf("decimal numbers: got %v, %v", got, err)
	}
	if got, err := ud.ParseAddr("[fe80::2]:7,qkey=0"); err != nil || got != addr("fe80::2", 7, 0) || got.String() != "[fe80::2]:0x000007" {
		t.Errorf("Q_Key 0: got %v, %v", got, err)
	}
	if g := ud.Group(group); !g.IsGroup() || g.IP() != group || g.IsZero() {
		t.Errorf("group: got %v", g)
	}
}

func TestAddrRefusesText(t *testing.T) {
	for _, text := range []string{
		"", "10.0.0.2", "fd00::2", "10.0.0.2:", "10.0.0.2:x", "10.0.0.2:0x1000000", "10.0.0.2:-1", ":5", "[10.0.0.2]:5",
		"fd00::2:0x000005", "[fd00::2:5", "10.0.0.2:5,qkey=", "10.0.0.2:5,qkey=0x100000000", "10.0.0.2:5,key=1", "host:5", "239.1.2.3,",
	} {
		got, err := ud.ParseAddr(text)
		if !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%q: got %v, want %v", text, err, verbs.ErrInvalid)
		}
		if !got.IsZero() {
			t.Errorf("%q: got %v together with an error", text, got)
		}
	}
}

func TestAddrInJSON(t *testing.T) {
	type config struct{ Peer ud.Addr }
	want := config{addr("fd00::2", 0x1a, 7)}
	text, err := json.Marshal(want)
	check(t, err)
	var got config
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s: got %v, %v", text, got, err)
	}
}

func FuzzParseAddr(f *testing.F) {
	f.Add("10.0.0.2:0x00001a,qkey=0x11111111")
	f.Add("[fd00::2]:5")
	f.Add("[::ffff:10.0.0.2]:5")
	f.Add("ff02::1%eth0")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ud.ParseAddr(text)
		if err != nil {
			return
		}
		if again, err := ud.ParseAddr(a.String()); err != nil || again != a {
			t.Errorf("%q: got %+v with the text %v, which parses as %+v, %v", text, a, a, again, err)
		}
	})
}
