// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// TestExchangeBytes compares the bytes of each half with those that rdma-core's other half sends and expects.
func TestExchangeBytes(t *testing.T) {
	own := Destination{QPN: 2, GID: verbs.GID{15: 9}}
	t.Run("client", func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		result := make(chan Destination, 1)
		go func() {
			defer here.Close()
			peer, _ := Introduce(here, &Terms{}, own, 1)
			result <- peer
		}()
		expect(t, there, string(own.Message()))
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
			result <- Answer(here, &Terms{}, 1, func(peer Destination) (Destination, error) {
				if peer != goldenDestination {
					t.Errorf("peer %+v", peer)
				}
				return own, nil
			})
		}()
		io.WriteString(there, golden)
		expect(t, there, string(own.Message()))
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
	ready := func(Destination) (Destination, error) { return Destination{}, nil }
	refusal := errors.New("not ready")
	for name, row := range map[string]struct {
		err, want error
	}{
		"client, web server":      {second(Introduce(stranger("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n"), &Terms{}, Destination{}, 1)), unix.EBADMSG},
		"client, silence":         {second(Introduce(stranger(""), &Terms{}, Destination{}, 1)), io.EOF},
		"client, half a response": {second(Introduce(stranger(golden[:20]), &Terms{}, Destination{}, 1)), io.ErrUnexpectedEOF},
		"client, no GID":          {second(Introduce(stranger(string(Destination{QPN: 2}.Message())), &Terms{}, Destination{}, 1)), unix.EBADMSG},
		"server, never confirms":  {Answer(stranger(golden), &Terms{}, 1, ready), io.EOF},
		"server, wrong word":      {Answer(stranger(golden+"nope\x00"), &Terms{}, 1, ready), unix.EBADMSG},
		"server, not ready":       {Answer(stranger(golden), &Terms{}, 1, func(Destination) (Destination, error) { return Destination{}, refusal }), refusal},
	} {
		if !errors.Is(row.err, row.want) {
			t.Errorf("%s: %v, want %v", name, row.err, row.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
