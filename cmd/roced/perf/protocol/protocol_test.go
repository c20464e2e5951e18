// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRequestCheck(t *testing.T) {
	good := Test{Kind: Latency, Size: 64}
	for _, row := range []struct {
		r    Request
		want error
	}{
		{Request{Version, []Test{good}}, nil},
		{Request{Version + 1, []Test{good}}, unix.EPROTONOSUPPORT},
		{Request{Version, nil}, unix.EINVAL},
		{Request{Version, make([]Test, MaxTests+1)}, unix.EINVAL},
		{Request{Version, []Test{good, {Kind: "magic"}}}, unix.EINVAL},
		{Request{Version, []Test{{Kind: Bandwidth, Size: 1025}}}, unix.EMSGSIZE},
		{Request{Version, []Test{{Kind: Bandwidth, Size: -1}}}, unix.EMSGSIZE},
	} {
		if err := row.r.Check(1024); !errors.Is(err, row.want) {
			t.Errorf("%d tests, version %d: %v, want %v", len(row.r.Tests), row.r.Version, err, row.want)
		}
	}
}
