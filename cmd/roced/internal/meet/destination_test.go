// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// golden is the address that ibv_ud_pingpong sends from 10.77.0.1, composed from its source
// (rdma-core, libibverbs/examples/ud_pingpong.c at 1d07d99b813f, not a capture):
// sizeof "0000:000000:000000:00000000000000000000000000000000" bytes.
const golden = "0000:" + // LID
	"00004a:" + // QPN
	"f00baa:" + // PSN
	"00000000000000000000ffff0a4d0001" + // GID
	"\x00"

var goldenDestination = Destination{
	QPN: 0x4a, PSN: 0xf00baa, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 1},
}

func TestDestinationGolden(t *testing.T) {
	if len(golden) != len("0000:000000:000000:00000000000000000000000000000000")+1 {
		t.Fatalf("%d bytes", len(golden))
	}
	if got := goldenDestination.Message(); string(got) != golden {
		t.Errorf("message %q, want %q", got, golden)
	}
	got, err := parseDestination([]byte(golden))
	if err != nil || got != goldenDestination {
		t.Errorf("parse: %+v, %v", got, err)
	}
}

func TestDestinationBad(t *testing.T) {
	for _, bad := range []string{
		"",
		golden[:51],
		golden + "\x00",
		golden[:51] + "x",
		strings.Replace(golden, ":", ";", 1),
		strings.Replace(golden, "0000:", "+000:", 1),
		strings.Replace(golden, "0000:", "0x00:", 1),
		strings.Replace(golden, "00004a", "0_004a", 1),
		strings.Replace(golden, "00004a", "00004g", 1),
		strings.Replace(golden, "00004a", "0000\xc3\xa9", 1),
		strings.Replace(golden, "f00baa", " 00baa", 1),
		strings.Replace(golden, "ffff", "fffx", 1),
	} {
		if d, err := parseDestination([]byte(bad)); !errors.Is(err, unix.EBADMSG) || d != (Destination{}) {
			t.Errorf("%q: %+v, %v", bad, d, err)
		}
	}
}

func FuzzParseDestination(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte(strings.ToUpper(golden)))
	f.Add(bytes.Repeat([]byte{':'}, destinationLen))
	f.Fuzz(func(t *testing.T, message []byte) {
		d, err := parseDestination(message)
		if err != nil {
			return
		}
		if got := d.Message(); !bytes.Equal(got, bytes.ToLower(message)) {
			t.Errorf("%q became %q", message, got)
		}
	})
}
