// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTermsOfStrangers: invalid terms are an error, and a line without an end is read only up to the limit.
func TestTermsOfStrangers(t *testing.T) {
	for _, row := range []struct {
		line string
		want error
	}{
		{"", io.EOF},
		{"{\"program\":\"per", io.ErrUnexpectedEOF},
		{"\n", unix.EBADMSG},
		{"[]\n", unix.EBADMSG},
		{"{}\n", unix.EBADMSG},
		{"{\"program\":7}\n", unix.EBADMSG},
		{strings.Repeat("x", 1<<20), unix.EBADMSG},
	} {
		_, err := readTerms(strings.NewReader(row.line))
		if !errors.Is(err, row.want) && !(row.want == io.ErrUnexpectedEOF && errors.Is(err, io.EOF)) {
			t.Errorf("%.40q: %v, want %v", row.line, err, row.want)
		}
	}
	own := &Terms{Program: "perf", MTU: 1024}
	if err := own.compare(&Terms{Program: "\x1b[31mperf", MTU: 1024}); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
}

// TestMarksAreRead: programs of rdma-core and perftest, which exchange no terms, receive the expected messages, and
// their responses are read completely.
func TestMarksAreRead(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		defer here.Close()
		own := &Terms{Program: "ping", MTU: 1024}
		if peer, err := Introduce(here, own, Destination{QPN: 2, GID: goldenDestination.GID}, 1); err != nil || peer != goldenDestination {
			t.Errorf("%+v, %v", peer, err)
		}
	}()
	message := make([]byte, destinationLen)
	if _, err := io.ReadFull(there, message); err != nil || !strings.HasPrefix(string(message), "0x00:000002:") {
		t.Fatalf("%q, %v", message, err)
	}
	io.WriteString(there, golden)
	expect(t, there, DoneMessage)
}
