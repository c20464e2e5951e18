// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMessagesInTrain(t *testing.T) {
	control := make([]byte, controlSize)
	binary.NativeEndian.PutUint32(control[unix.CmsgLen(0):], 100)
	for _, c := range []struct {
		length  int
		control []byte
		want    int
	}{
		{100, nil, 1}, {100, control, 1}, {6400, control, 64}, {6401, control, 65},
	} {
		if got := messagesIn(c.length, c.control); got != c.want {
			t.Errorf("%d bytes: %d messages, want %d", c.length, got, c.want)
		}
	}
}

func TestTrainsFit(t *testing.T) {
	for _, size := range payloads {
		if n := segments(size); n < 2 || n*size > trainBytes {
			t.Errorf("%d bytes: trains of %d", size, n)
		}
	}
}
