// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/own"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"golang.org/x/sys/unix"
)

// TestFinish: an outcome that the server sends before the client's report is an error, except a report of failure.
func TestFinish(t *testing.T) {
	for _, row := range []struct {
		before, after, want string
	}{
		{"", `{"received":7,"elapsed_ns":1}`, ""},
		{`{"received":7,"elapsed_ns":1}`, "", "unexpected outcome"},
		{`{"sent":0}`, "", `no "received"`},
		{`{"received":0,"elapsed_ns":0,"error":"out of luck"}`, "", "failed: out of luck"},
		{"", `{"sent":0}`, `no "received"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, err := finishWith(t, row.before, row.after)
			if row.want == "" && (err != nil || o.Received != 7) {
				t.Errorf("%+v: %+v, %v", row, o, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%+v: %v", row, err)
			}
			if row.want == "unexpected outcome" && !errors.Is(err, unix.EBADMSG) {
				t.Error(err)
			}
		})
	}
}

// finishWith returns the result of Finish with a server that sends one line before the client's report
// and one after it.
func finishWith(t *testing.T, before, after string) (protocol.Outcome, error) {
	here, there := net.Pipe()
	c := &own.Client{Control: meet.NewControl(t.Context(), here, "a test")}
	defer there.Close()
	defer c.Control.Close()
	if err := c.Exchange(func(io.ReadWriter) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if before != "" {
		io.WriteString(there, before+"\n")
	}
	synctest.Wait() // until the line has been read
	go func() {
		bufio.NewReader(there).ReadString('\n')
		io.WriteString(there, after+"\n")
	}()
	return c.Finish(100)
}
