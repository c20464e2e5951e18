// SPDX-License-Identifier: Apache-2.0

package pcapng

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// TestGolden compares the bytes of a capture with one packet.
func TestGolden(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, "eth0", "x", 96)
	if err != nil {
		t.Fatal(err)
	}
	packet := Packet{Time: time.Unix(0, 0x0102030405060708), Out: true, Frame: []byte{0xa, 0xb, 0xc, 0xd, 0xe}, Length: 9, Comment: "sent", Lost: 7}
	if err := w.Write(&packet); err != nil {
		t.Fatal(err)
	}
	want := []byte{
		0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, // section, length
		0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, // byte order, version 1.0
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // of unknown length
		4, 0, 1, 0, 'x', 0, 0, 0, // the program
		0, 0, 0, 0, 40, 0, 0, 0, // end of options, length
		1, 0, 0, 0, 40, 0, 0, 0, // interface, length
		1, 0, 0, 0, 96, 0, 0, 0, // Ethernet, snap length
		2, 0, 4, 0, 'e', 't', 'h', '0', // its name
		9, 0, 1, 0, 9, 0, 0, 0, // times in nanoseconds
		0, 0, 0, 0, 40, 0, 0, 0, // end of options, length
		6, 0, 0, 0, 72, 0, 0, 0, // packet, length
		0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, // interface, time
		5, 0, 0, 0, 9, 0, 0, 0, // bytes kept, length of the frame
		0xa, 0xb, 0xc, 0xd, 0xe, 0, 0, 0, // the frame, padded
		2, 0, 4, 0, 2, 0, 0, 0, // flags: outbound
		1, 0, 4, 0, 's', 'e', 'n', 't', // comment
		4, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0, // lost
		0, 0, 0, 0, 72, 0, 0, 0, // end of options, length
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("% x\nwant\n% x", b.Bytes(), want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestWriteFails(t *testing.T) {
	if _, err := NewWriter(broken{}, "", "", 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
