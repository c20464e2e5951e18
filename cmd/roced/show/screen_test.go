// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestScreen: a text is truncated to the height, and close restores the previous contents.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := openScreen(&out)
	s.height = func() int { return 4 }
	for _, text := range []string{"1\n2\n3\n4\n5\n", "1\n2\n"} {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	want := enterScreen + "\x1b[H1\x1b[K\r\n2\x1b[K\r\n… and 3 more\x1b[K\r\n\x1b[J" + "\x1b[H1\x1b[K\r\n2\x1b[K\r\n\x1b[J" + leaveScreen
	if got := out.String(); got != want || strings.Contains(got, "\x1b[3J") {
		t.Errorf("%q, want %q", got, want)
	}
}

type cells []string

func (c cells) cells() []string { return c }

// TestTable: numbers are right-aligned, other columns left-aligned.
func TestTable(t *testing.T) {
	got := table([]string{"NAME", "VALUE", ""}, []row{cells{"a", "1,234", ""}, cells{"longer", "5", "lost"}}, 0)
	want := "NAME    VALUE\na       1,234\nlonger      5  lost\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := table([]string{"NAME", "VALUE"}, nil, 0); got != "NAME  VALUE\n" {
		t.Errorf("%q", got)
	}
}

// TestTableOfAWidth: columns and words that do not fit continue on further lines. No text is omitted.
func TestTableOfAWidth(t *testing.T) {
	got := table([]string{"NAME", "FIRST", "SECOND", ""}, []row{cells{"a", "1", "x", "one two three four"}, cells{"b", "22", "yy", ""}}, 14)
	want := "NAME  FIRST\n  SECOND\na         1\n  x\n  one two\n  three four\nb        22\n  yy\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWidthOfTheLists: the lines of all lists fit 80 columns, even with long values.
func TestWidthOfTheLists(t *testing.T) {
	const address = "fd77:1234:5678:9abc:def0:1234:5678:9abc"
	o := owner{"enp193s0f1np1", 12345, 1234567, "ib_write_bw-long", "systemd-network"}
	device := &deviceRow{
		Name: "enp193s0f1np1", Netdev: "enp193s0f1np1", GUID: "0011:2233:4455:6677", Firmware: "v0.1.0-rc1", State: "ACTIVE", Network: "xdp", XDP: "native", AFXDP: "zero-copy",
		Send: "af_xdp", NoTrains: "eth0 would hand trains on as they are: the other end has no native XDP program", Workers: 8,
	}
	for use, r := range map[string]row{
		"dev": device, "port": &portRow{Link: "enp193s0f1np1", Port: 1, State: "ACTIVE", Physical: "LINK_UP", Netdev: "enp193s0f1np1", MTU: 4096, LinkMTU: 9000, Speed: 100000},
		"client": &clientRow{owner: o, PDs: 100, CQs: 1000, QPs: 1000, SRQs: 10, MRs: 10000, AHs: 1000, Memberships: 10, Attachments: 10, Memory: 1 << 40},
		"pd":     &pdRow{o, 1 << 30, 100}, "cq": &cqRow{o, 1 << 30, 65536, 65536, 100, "OVERRUN"},
		"qp":  &qpRow{owner: o, QPN: 0xffffff, Type: "XRC_SEND", State: "RTS", PeerQPN: 0xffffff, Peer: address, QKey: "0x11111111", PD: 1 << 30, SendCQ: 1 << 30, RecvCQ: 1 << 30, SRQ: 1 << 30, MaxSends: 16384},
		"srq": &srqRow{o, 1 << 30, 1 << 30, 16384, 16384, 100, 100}, "mr": &mrRow{o, 1 << 30, "0x12345678", 1 << 40, "0x7f0012345678", "write,remote-read,remote-write,remote-atomic,mw-bind", 1 << 30},
		"ah": &ahRow{o, 1 << 30, 1 << 30, address, address, "UNREACHABLE"}, "mcast": &mcastRow{o, address, "send-only", 0xffffff, 0xffff},
		"cm":    &idRow{owner: o, ID: 1 << 30, PortSpace: "TCP", Type: "RC", State: "ROUTE_RESOLVED", Source: "[" + address + "]:65535", Dest: "[" + address + "]:65535"},
		statUse: &statRow{Device: "enp193s0f1np1", Place: "engine", Name: "np_ecn_marked_roce_packets", Value: 1 << 60, Lost: true},
	} {
		at := slices.IndexFunc(nouns, func(n *noun) bool { return n.use == use })
		for _, line := range strings.Split(table(nouns[at].header, []row{r}, 80), "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %q", use, line)
			}
		}
	}
	header := []string{"INDEX", "GID", "TYPE", "IP", "NETDEV", "DEFAULT"}
	for _, line := range strings.Split(table(header, []row{&gidLine{100, address, gidType, "IPv6", "enp193s0f1np1", true}}, 80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("gid: %q", line)
		}
	}
}
