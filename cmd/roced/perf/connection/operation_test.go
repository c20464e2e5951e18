// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestParseOperation: the error lists the operations, and is EINVAL.
func TestParseOperation(t *testing.T) {
	for _, o := range []Operation{Send, Write, Read, Atomic, Swap} {
		if got, err := ParseOperation(string(o)); got != o || err != nil {
			t.Errorf("%s: %v, %v", o, got, err)
		}
	}
	_, err := ParseOperation("wirte")
	if !errors.Is(err, unix.EINVAL) || err.Error() != "--op must be send, write, read, atomic or swap: wirte" {
		t.Error(err)
	}
}
