// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// word is the message type of the tests.
type word struct {
	Sent  uint64            `json:"sent"`
	Drops map[string]uint64 `json:"drops"`
}

func (*word) Required() []string { return []string{"sent"} }

// listening returns a Control whose peer sends a text.
func listening(t *testing.T, speech string) *Control {
	t.Helper()
	here, there := net.Pipe()
	c := NewControl(t.Context(), here, "a test")
	t.Cleanup(func() { c.Close(); there.Close() })
	if err := c.Exchange(func(io.ReadWriter) error { return nil }); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(there, speech)
	return c
}

func TestReceive(t *testing.T) {
	for _, row := range []struct {
		line, want string
	}{
		{`{"sent":7}`, ""},
		{`{"sent":7,"drops":null,"later":1}`, ""},
		{`null`, `sent "null", which is invalid`},
		{`{"sent":null}`, `no "sent"`},
		{`{"received":7}`, `no "sent"`},
		{`[]`, "invalid in roced perf's protocol"},
		{"\x1b[31m", `sent "\x1b[31m", which is invalid in roced perf's protocol`},
		{`{"sent":18446744073709551616}`, "the peer sent an invalid value, sent number 18446744073709551616"},
		{`{"sent":-1}`, "the peer sent an invalid value, sent number -1"},
		{`{"sent":` + strings.Repeat("9", 1000) + `}`, "9…: "},
		{`{"sent":7,"drops":{"a":1.5}}`, "1.5: "},
		{`{"drops":` + strings.Repeat("[", 100000), "invalid in roced perf's protocol"},
	} {
		var w word
		err := listening(t, row.line+"\n").ReceiveSoon(&w)
		switch {
		case row.want == "" && (err != nil || w.Sent != 7):
			t.Errorf("%s: %+v, %v", row.line, w, err)
		case row.want != "" && (!errors.Is(err, unix.EBADMSG) || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%.80s: %v, want %q", row.line, err, row.want)
		}
	}
}

func TestLongLine(t *testing.T) {
	var w word
	err := listening(t, strings.Repeat("x", 2*maxLine)).ReceiveSoon(&w)
	if !errors.Is(err, unix.EMSGSIZE) || !strings.Contains(err.Error(), "the peer's line is longer than 1 MiB") {
		t.Error(err)
	}
}

// TestEarly: a line that has arrived is returned once, without waiting.
func TestEarly(t *testing.T) {
	var w word
	c := listening(t, "{\"sent\":1}\n{\"sent\":2}\n")
	if err := c.ReceiveSoon(&w); err != nil || w.Sent != 1 {
		t.Fatalf("%+v, %v", w, err)
	}
	for came := false; !came; {
		var err error
		if came, err = c.Early(&w); err != nil {
			t.Fatal(err)
		}
	}
	if came, err := c.Early(&w); came || err != nil || w.Sent != 2 {
		t.Errorf("%+v, %v, %v", w, came, err)
	}
}
