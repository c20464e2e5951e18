package cli

import (
	"strings"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	start := time.Unix(1000, 0)
	p := &Progress{label: "bandwidth of 64 bytes", start: start}
	p.Add(3000)
	line := p.line(start.Add(3 * time.Second))
	for _, want := range []string{"\r", "bandwidth of 64 bytes", "3s", "3,000 messages", "1,000/s"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q does not say %q", line, want)
		}
	}
}

func TestProgressNeedsATerminal(t *testing.T) {
	p := StartProgress(&strings.Builder{}, "x")
	if p != nil {
		t.Error("progress in a buffer")
	}
	p.Add(1)
	p.End()
}
