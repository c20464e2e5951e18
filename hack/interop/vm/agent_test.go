// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"net"
	"testing"
)

// agentPort returns a port to an agent that sends a text.
func agentPort(t *testing.T, text string) *port {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	go func() {
		far.Write([]byte(text))
		far.Close()
	}()
	return newPort(near)
}

func TestCopyUntil(t *testing.T) {
	const mark = "ABAC EXIT "
	for _, row := range []struct{ name, text, want string }{
		{"nothing", "\n" + mark, "\n"},
		{"text", "said\n" + mark, "said\n"},
		{"part of the mark", "ABAB\nABAC EXI\n" + mark, "ABAB\nABAC EXI\n"},
		{"the mark's beginning, twice", "ABABAC\n" + mark, "ABABAC\n"},
	} {
		var got bytes.Buffer
		if err := agentPort(t, row.text).copyUntil(&got, mark); err != nil || got.String() != row.want {
			t.Errorf("%s: %q, %v; want %q", row.name, &got, err, row.want)
		}
	}
	if err := agentPort(t, "said\n").copyUntil(&bytes.Buffer{}, mark); err == nil {
		t.Error("no error from an agent that closed the connection")
	}
}
