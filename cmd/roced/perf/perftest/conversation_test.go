// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// own contains this side's keys in the conversations with a recorded peer.
var own = Keys{Destination: meet.Destination{QPN: 2, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: 9}}, OutReads: 1}

// converse runs the whole conversation and returns the peer's MTU.
func converse(x *Conversation) (mtu wire.MTU, err error) {
	if mtu, err = x.Greet(wire.MTU4096); err != nil {
		return 0, err
	}
	if err := x.Meet(func(*Keys) (Keys, error) { return own, nil }); err != nil {
		return 0, err
	}
	if err := x.Prepare(); err != nil {
		return 0, err
	}
	if !x.Client {
		if err := x.AwaitEnd(); err != nil {
			return 0, err
		}
	}
	return mtu, x.End()
}

// TestPerftestBytes compares each side with the bytes of perftest's other side.
func TestPerftestBytes(t *testing.T) {
	lengths := []int{16, 4, 4, 2, 108, 108, 108, 108, 108}
	ours := strings.Replace(goldenGreeting, "3\x00", "5\x00", 1) + strings.Repeat(string(own.message()), 5)
	for _, row := range []struct {
		name   string
		client bool
		theirs string
	}{
		{"client", true, goldenGreeting + strings.Repeat(serverKeys, 5)},
		{"client, to a group", true, goldenGreeting + strings.Repeat(groupKeys, 5)},
		{"server", false, goldenGreeting + strings.Repeat(clientKeys, 5)},
	} {
		t.Run(row.name, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			there.SetDeadline(time.Now().Add(waittest.Limit)) // a side that waits for another message fails
			x := &Conversation{Conn: here, Client: row.client}
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
			for _, length := range lengths { // one message of each in turn, the client's first
				say := func() { io.WriteString(there, theirs[:length]) }
				if !row.client {
					say()
				}
				expectBytes(t, there, ours[:length])
				if row.client {
					say()
				}
				ours, theirs = ours[length:], theirs[length:]
			}
			expectBytes(t, there, "done\x00")
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

func expectBytes(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

// TestFirstMessages: the error for another known client names it. Other messages are quoted without trailing NULs.
func TestFirstMessages(t *testing.T) {
	for speech, want := range map[string]string{
		cmdtest.PingpongAddress:     "the client is ibv_*_pingpong of rdma-core; start roced ping for it: ",
		"GET / HTTP/1.1\r\n":        `the peer's first bytes are "GET / HTTP/1.1\r\n"; `,
		"6.20" + goldenGreeting[4:]: `the peer's first bytes are "6.20"; roced supports perftest 6.06`,
	} {
		x := &Conversation{Conn: struct {
			io.Reader
			io.Writer
		}{strings.NewReader(speech), io.Discard}}
		if _, err := converse(x); !errors.Is(err, unix.EPROTONOSUPPORT) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", speech, err, want)
		}
	}
}

func TestPerftestStrangers(t *testing.T) {
	changed := strings.Replace(clientKeys, "000011", "000012", 1)
	for name, row := range map[string]struct {
		speech string
		want   error
		says   string
	}{
		"silence":           {"", io.EOF, ""},
		"half a version":    {"6.0", io.ErrUnexpectedEOF, ""},
		"another version":   {"6.20" + goldenGreeting[4:], unix.EPROTONOSUPPORT, "perftest 6.06"},
		"ibv_ud_pingpong":   {cmdtest.PingpongAddress, unix.EPROTONOSUPPORT, "; "},
		"an MTU of 6":       {goldenGreeting[:24] + "6\x00", unix.EBADMSG, "not an MTU"},
		"an MTU of 0":       {goldenGreeting[:24] + "0\x00", unix.EBADMSG, "not an MTU"},
		"an MTU of digits":  {goldenGreeting[:24] + "33", unix.EBADMSG, "not an MTU"},
		"other keys":        {goldenGreeting + strings.Replace(clientKeys, ":", "-", 1), unix.EBADMSG, "not an address of perftest 6.06"},
		"no GID":            {goldenGreeting + strings.NewReplacer("ff", "00", "0a", "00", "42", "00", "02", "00").Replace(clientKeys), unix.EBADMSG, "no GID"},
		"two queue pairs":   {goldenGreeting + clientKeys + changed, unix.EBADMSG, "-q"},
		"closes before end": {goldenGreeting + strings.Repeat(clientKeys, 4), io.EOF, ""},
		"another end":       {goldenGreeting + strings.Repeat(clientKeys, 4) + changed, unix.EBADMSG, "-q"},
	} {
		for _, client := range []bool{true, false} {
			x := &Conversation{Conn: struct {
				io.Reader
				io.Writer
			}{strings.NewReader(row.speech), io.Discard}, Client: client}
			if _, err := converse(x); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s, client %t: %v, want %v with %q", name, client, err, row.want, row.says)
			}
		}
	}
}

func TestPerftestServerIsNotReady(t *testing.T) {
	refusal := errors.New("not ready")
	x := &Conversation{Conn: struct {
		io.Reader
		io.Writer
	}{strings.NewReader(clientKeys), io.Discard}}
	err := x.Meet(func(peer *Keys) (Keys, error) {
		if *peer != clientKeysParsed {
			t.Errorf("peer %+v", peer)
		}
		return Keys{}, refusal
	})
	if !errors.Is(err, refusal) {
		t.Error(err)
	}
}
