package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// golden is what ibv_ud_pingpong sends from 10.77.0.1, put together after its source
// (rdma-core, libibverbs/examples/ud_pingpong.c at 1d07d99b813f, not a capture):
// sizeof "0000:000000:000000:00000000000000000000000000000000" bytes.
const golden = "0000:" + // LID
	"00004a:" + // QPN
	"f00baa:" + // PSN
	"00000000000000000000ffff0a4d0001" + // GID
	"\x00"

var goldenDestination = destination{
	QPN: 0x4a, PSN: 0xf00baa, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 1},
}

func TestDestinationGolden(t *testing.T) {
	if len(golden) != len("0000:000000:000000:00000000000000000000000000000000")+1 {
		t.Fatalf("%d bytes", len(golden))
	}
	if got := goldenDestination.message(); string(got) != golden {
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
		if d, err := parseDestination([]byte(bad)); !errors.Is(err, unix.EBADMSG) || d != (destination{}) {
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
		if got := d.message(); !bytes.Equal(got, bytes.ToLower(message)) {
			t.Errorf("%q became %q", message, got)
		}
	})
}

// TestExchangeBytes holds each half against the bytes of rdma-core's other half.
func TestExchangeBytes(t *testing.T) {
	own := destination{QPN: 2, GID: verbs.GID{15: 9}}
	t.Run("client", func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		result := make(chan destination, 1)
		go func() {
			defer here.Close()
			peer, _ := introduce(here, own)
			result <- peer
		}()
		expect(t, there, string(own.message()))
		io.WriteString(there, golden)
		expect(t, there, "done\x00")
		if peer := <-result; peer != goldenDestination {
			t.Errorf("peer %+v", peer)
		}
	})
	t.Run("server", func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		result := make(chan error, 1)
		go func() {
			defer here.Close()
			result <- answer(here, func(peer destination) (destination, error) {
				if peer != goldenDestination {
					t.Errorf("peer %+v", peer)
				}
				return own, nil
			})
		}()
		io.WriteString(there, golden)
		expect(t, there, string(own.message()))
		io.WriteString(there, "done\x00")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func expect(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
}

func TestExchangeWithStrangers(t *testing.T) {
	stranger := func(speech string) io.ReadWriter {
		return struct {
			io.Reader
			io.Writer
		}{strings.NewReader(speech), io.Discard}
	}
	ready := func(destination) (destination, error) { return destination{}, nil }
	refusal := errors.New("not ready")
	for name, row := range map[string]struct {
		err, want error
	}{
		"client, web server":     {second(introduce(stranger("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n"), destination{})), unix.EBADMSG},
		"client, silence":        {second(introduce(stranger(""), destination{})), io.EOF},
		"client, half an answer": {second(introduce(stranger(golden[:20]), destination{})), io.ErrUnexpectedEOF},
		"client, no GID":         {second(introduce(stranger(string(destination{QPN: 2}.message())), destination{})), unix.EBADMSG},
		"server, never confirms": {answer(stranger(golden), ready), io.EOF},
		"server, wrong word":     {answer(stranger(golden+"nope\x00"), ready), unix.EBADMSG},
		"server, not ready":      {answer(stranger(golden), func(destination) (destination, error) { return destination{}, refusal }), refusal},
	} {
		if !errors.Is(row.err, row.want) {
			t.Errorf("%s: %v, want %v", name, row.err, row.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
