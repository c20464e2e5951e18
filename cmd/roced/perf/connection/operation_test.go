package connection

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestParseOperation: an error says what there is, and what kind of error it is only to programs.
func TestParseOperation(t *testing.T) {
	for _, o := range []Operation{Send, Write, Read, Atomic, Swap} {
		if got, err := ParseOperation(string(o)); got != o || err != nil {
			t.Errorf("%s: %v, %v", o, got, err)
		}
	}
	_, err := ParseOperation("wirte")
	if !errors.Is(err, unix.EINVAL) || err.Error() != "--op wirte: send, write, read, atomic or swap" {
		t.Error(err)
	}
}
