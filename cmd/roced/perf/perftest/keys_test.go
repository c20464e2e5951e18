// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Messages that ib_send_bw of Debian 12 (perftest 4.5+0.17) wrote to its socket, as shown by
// strace(1): "-c UD -x 0 -s 32 -n 8", the client at 10.66.0.2, the server at 10.66.0.1.
const (
	goldenGreeting = "6.06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // version
		"\x00\x00\x10\x00" + // page size
		"\x00\x00\x00\x40" + // cache line
		"3\x00" // MTU 1024
	clientKeys = "0000:0001:000011:f591df:00001234:000055d8fe2c0000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:42:00:02:00000000:\x00"
	serverKeys = "0000:0001:000011:c32254:00001234:0000557bf3cea000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:42:00:01:00000000:\x00"
	// With -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3.
	groupKeys = "0000:0001:ffffff:89c918:00001234:000055eb3b40e000:00:00:00:00:00:00:00:00:00:00:ff:ff:ef:01:02:03:00000000:\x00"
)

var (
	clientKeysParsed = Keys{
		Destination: meet.Destination{QPN: 0x11, PSN: 0xf591df, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 66, 14: 0, 15: 2}},
		OutReads:    1, RKey: 0x1234, Address: 0x55d8fe2c0000,
	}
	groupKeysParsed = Keys{
		Destination: meet.Destination{QPN: verbs.MulticastQPN, PSN: 0x89c918, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 239, 13: 1, 14: 2, 15: 3}},
		OutReads:    1, RKey: 0x1234, Address: 0x55eb3b40e000,
	}
)

func TestPerftestKeysGolden(t *testing.T) {
	for text, want := range map[string]Keys{clientKeys: clientKeysParsed, groupKeys: groupKeysParsed} {
		got, err := parseKeys([]byte(text))
		if err != nil || got != want {
			t.Errorf("parse %q: %+v, %v", text, got, err)
		}
		if message := want.message(); string(message) != text {
			t.Errorf("message %q, want %q", message, text)
		}
		if err := got.check(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	all := Keys{meet.Destination{LID: 0xfffe, QPN: 0xfffffd, PSN: 0xfffffc, GID: verbs.GID{0: 1, 15: 2}}, 0xfffb, 0xfffffffa, 0xfffffffffffffff9, 0xfffffff8}
	if got, err := parseKeys(all.message()); err != nil || got != all {
		t.Errorf("%+v became %+v, %v", all, got, err)
	}
}

func TestPerftestKeysBad(t *testing.T) {
	for _, bad := range []string{
		"",
		clientKeys[:107],
		clientKeys + "\x00",
		clientKeys[:107] + "x",
		strings.Replace(clientKeys, ":", ";", 1),
		strings.Replace(clientKeys, ":00000000:", ":00000000;", 1),
		strings.Replace(clientKeys, "0000:", "0x00:", 1),
		strings.Replace(clientKeys, "000011", " 00011", 1),
		strings.Replace(clientKeys, "000011", "00001g", 1),
		strings.Replace(clientKeys, "000055d8", "+00055d8", 1),
		strings.Replace(clientKeys, ":ff:ff:", ":f:0ff:", 1),
	} {
		if k, err := parseKeys([]byte(bad)); !errors.Is(err, unix.EBADMSG) || k != (Keys{}) {
			t.Errorf("%q: %+v, %v", bad, k, err)
		}
	}
}

func FuzzParsePerftestKeys(f *testing.F) {
	f.Add([]byte(clientKeys))
	f.Add([]byte(strings.ToUpper(groupKeys)))
	f.Add(bytes.Repeat([]byte{':'}, keysLen))
	f.Fuzz(func(t *testing.T, message []byte) {
		k, err := parseKeys(message)
		if err != nil {
			return
		}
		if got := k.message(); !bytes.Equal(got, bytes.ToLower(message)) {
			t.Errorf("%q became %q", message, got)
		}
	})
}

func TestPerftestKeysCheck(t *testing.T) {
	for want, spoil := range map[string]func(*Keys){
		"no GID":              func(k *Keys) { k.GID = verbs.GID{} },
		"does not receive":    func(k *Keys) { k.QPN = 0 },
		"a group address":     func(k *Keys) { k.QPN = verbs.MulticastQPN },
		"instead of its own:": func(k *Keys) { k.GID = groupKeysParsed.GID },
	} {
		k := clientKeysParsed
		spoil(&k)
		if err := k.check(); !errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error with %q", k, err, want)
		}
	}
}
