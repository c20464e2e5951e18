// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressLine(t *testing.T) {
	start := time.Unix(1000, 0)
	p := &Progress{label: "bandwidth of 64 bytes", start: start, terminal: true}
	p.Add(3000)
	line := p.line(start.Add(3 * time.Second))
	for _, want := range []string{"\r", "bandwidth of 64 bytes", "3s", "3,000 messages", "1,000/s"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q lacks %q", line, want)
		}
	}
}

// TestProgressWithoutATerminal: without a terminal a line is written every ten seconds. A short test writes no line.
func TestProgressWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := StartProgress(&out, "x")
		p.Add(100)
		time.Sleep(9 * time.Second)
		p.End()
		if out.String() != "" {
			t.Errorf("a short test wrote %q", out.String())
		}
		p = StartProgress(&out, "x")
		p.Add(1000)
		time.Sleep(25 * time.Second)
		p.End()
		if want := "x: 10s, 1,000 messages, 100/s\nx: 20s, 1,000 messages, 50/s\n"; out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
		(*Progress)(nil).Add(1)
		(*Progress)(nil).End()
	})
}
