package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What ib_send_bw of Debian 12 (perftest 4.5+0.17) wrote to its socket in a run, as
// strace(1) showed it: "-c UD -x 0 -s 32 -n 8", the client at 10.66.0.2, the server
// at 10.66.0.1.
const (
	perftestGreeting = "6.06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + // version
		"\x00\x00\x10\x00" + // page size
		"\x00\x00\x00\x40" + // cache line
		"3\x00" // MTU 1024
	clientKeys = "0000:0001:000011:f591df:00001234:000055d8fe2c0000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:42:00:02:00000000:\x00"
	serverKeys = "0000:0001:000011:c32254:00001234:0000557bf3cea000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:42:00:01:00000000:\x00"
	// With -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3.
	groupKeys = "0000:0001:ffffff:89c918:00001234:000055eb3b40e000:00:00:00:00:00:00:00:00:00:00:ff:ff:ef:01:02:03:00000000:\x00"
)

var (
	clientKeysParsed = perftestKeys{
		destination: destination{QPN: 0x11, PSN: 0xf591df, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 66, 14: 0, 15: 2}},
		OutReads:    1, RKey: 0x1234, Address: 0x55d8fe2c0000,
	}
	groupKeysParsed = perftestKeys{
		destination: destination{QPN: verbs.MulticastQPN, PSN: 0x89c918, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 239, 13: 1, 14: 2, 15: 3}},
		OutReads:    1, RKey: 0x1234, Address: 0x55eb3b40e000,
	}
)

func TestPerftestKeysGolden(t *testing.T) {
	for text, want := range map[string]perftestKeys{clientKeys: clientKeysParsed, groupKeys: groupKeysParsed} {
		got, err := parsePerftestKeys([]byte(text))
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
	all := perftestKeys{destination{0xfffe, 0xfffffd, 0xfffffc, verbs.GID{0: 1, 15: 2}}, 0xfffb, 0xfffffffa, 0xfffffffffffffff9, 0xfffffff8}
	if got, err := parsePerftestKeys(all.message()); err != nil || got != all {
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
		if k, err := parsePerftestKeys([]byte(bad)); !errors.Is(err, unix.EBADMSG) || k != (perftestKeys{}) {
			t.Errorf("%q: %+v, %v", bad, k, err)
		}
	}
}

func FuzzParsePerftestKeys(f *testing.F) {
	f.Add([]byte(clientKeys))
	f.Add([]byte(strings.ToUpper(groupKeys)))
	f.Add(bytes.Repeat([]byte{':'}, perftestKeysLen))
	f.Fuzz(func(t *testing.T, message []byte) {
		k, err := parsePerftestKeys(message)
		if err != nil {
			return
		}
		if got := k.message(); !bytes.Equal(got, bytes.ToLower(message)) {
			t.Errorf("%q became %q", message, got)
		}
	})
}

func TestPerftestKeysCheck(t *testing.T) {
	for want, spoil := range map[string]func(*perftestKeys){
		"no GID":              func(k *perftestKeys) { k.GID = verbs.GID{} },
		"takes no messages":   func(k *perftestKeys) { k.QPN = 0 },
		"a group's address":   func(k *perftestKeys) { k.QPN = verbs.MulticastQPN },
		"not one of its own:": func(k *perftestKeys) { k.GID = groupKeysParsed.GID },
	} {
		k := clientKeysParsed
		spoil(&k)
		if err := k.check(); !errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want one that says %q", k, err, want)
		}
	}
}

// own is this side's in the conversations with a recorded peer.
var own = perftestKeys{destination: destination{QPN: 2, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 9}}, OutReads: 1}

// converse has the whole conversation, and gives the peer's MTU.
func converse(x *perftestExchange) (mtu wire.MTU, err error) {
	if mtu, err = x.greet(wire.MTU4096); err != nil {
		return 0, err
	}
	if err := x.meet(func(*perftestKeys) (perftestKeys, error) { return own, nil }); err != nil {
		return 0, err
	}
	if err := x.prepare(); err != nil {
		return 0, err
	}
	if !x.client {
		if err := x.awaitEnd(); err != nil {
			return 0, err
		}
	}
	return mtu, x.end()
}

// TestPerftestBytes holds each half against the bytes of perftest's other half.
func TestPerftestBytes(t *testing.T) {
	lengths := []int{16, 4, 4, 2, 108, 108, 108, 108, 108}
	ours := strings.Replace(perftestGreeting, "3\x00", "5\x00", 1) + strings.Repeat(string(own.message()), 5)
	for _, row := range []struct {
		name   string
		client bool
		theirs string
	}{
		{"client", true, perftestGreeting + strings.Repeat(serverKeys, 5)},
		{"client, to a group", true, perftestGreeting + strings.Repeat(groupKeys, 5)},
		{"server", false, perftestGreeting + strings.Repeat(clientKeys, 5)},
	} {
		t.Run(row.name, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			there.SetDeadline(time.Now().Add(time.Minute)) // a side that waits for another message fails
			x := &perftestExchange{conn: here, client: row.client}
			result := make(chan error, 1)
			go func() {
				defer here.Close()
				mtu, err := converse(x)
				if err == nil && mtu != wire.MTU1024 {
					t.Errorf("the peer's MTU is %v", mtu)
				}
				result <- err
			}()
			ours, theirs := ours, row.theirs
			for _, length := range lengths { // one of each in turn, the client's first
				say := func() { io.WriteString(there, theirs[:length]) }
				if !row.client {
					say()
				}
				expect(t, there, ours[:length])
				if row.client {
					say()
				}
				ours, theirs = ours[length:], theirs[length:]
			}
			expect(t, there, "done\x00")
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPerftestStrangers(t *testing.T) {
	changed := strings.Replace(clientKeys, "000011", "000012", 1)
	for name, row := range map[string]struct {
		speech string
		want   error
		says   string
	}{
		"silence":          {"", io.EOF, ""},
		"half a version":   {"6.0", io.ErrUnexpectedEOF, ""},
		"another version":  {"6.20" + perftestGreeting[4:], unix.EPROTONOSUPPORT, "perftest 6.06"},
		"ibv_ud_pingpong":  {golden, unix.EPROTONOSUPPORT, "0000:00004a"},
		"an MTU of 6":      {perftestGreeting[:24] + "6\x00", unix.EBADMSG, "not an MTU"},
		"an MTU of 0":      {perftestGreeting[:24] + "0\x00", unix.EBADMSG, "not an MTU"},
		"an MTU of digits": {perftestGreeting[:24] + "33", unix.EBADMSG, "not an MTU"},
		"other keys":       {perftestGreeting + strings.Replace(clientKeys, ":", "-", 1), unix.EBADMSG, "not an address as perftest 6.06"},
		"no GID":           {perftestGreeting + strings.NewReplacer("ff", "00", "0a", "00", "42", "00", "02", "00").Replace(clientKeys), unix.EBADMSG, "no GID"},
		"two queue pairs":  {perftestGreeting + clientKeys + changed, unix.EBADMSG, "-q"},
		"goes before end":  {perftestGreeting + strings.Repeat(clientKeys, 4), io.EOF, ""},
		"another end":      {perftestGreeting + strings.Repeat(clientKeys, 4) + changed, unix.EBADMSG, "-q"},
	} {
		for _, client := range []bool{true, false} {
			x := &perftestExchange{conn: struct {
				io.Reader
				io.Writer
			}{strings.NewReader(row.speech), io.Discard}, client: client}
			if _, err := converse(x); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s, client %t: %v, want %v that says %q", name, client, err, row.want, row.says)
			}
		}
	}
}

func TestPerftestServerIsNotReady(t *testing.T) {
	refusal := errors.New("not ready")
	x := &perftestExchange{conn: struct {
		io.Reader
		io.Writer
	}{strings.NewReader(clientKeys), io.Discard}}
	err := x.meet(func(peer *perftestKeys) (perftestKeys, error) {
		if *peer != clientKeysParsed {
			t.Errorf("peer %+v", peer)
		}
		return perftestKeys{}, refusal
	})
	if !errors.Is(err, refusal) {
		t.Error(err)
	}
}
