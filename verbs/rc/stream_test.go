// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/rc"
	"golang.org/x/sys/unix"
)

// streams returns the ends of a stream.
func streams(t testing.TB, o rc.Options) (a, b *rc.Stream) {
	t.Helper()
	left, right := pair(t, o)
	return left.Stream(), right.Stream()
}

// TestStreamCopies sends more data than the buffers hold, in both directions concurrently, with io.Copy.
func TestStreamCopies(t *testing.T) {
	t.Parallel()
	for _, o := range []rc.Options{{}, {MaxMessage: 100, RecvDepth: 4, SendDepth: 2}, {Spin: true}} {
		a, b := streams(t, o)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 300_000)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		var all sync.WaitGroup
		all.Go(func() { // echoes until the end of the data
			_, err := io.Copy(b, struct{ io.Reader }{b})
			if err := errors.Join(err, b.CloseWrite()); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for rest := data; len(rest) > 0; {
				n, err := a.Write(rest[:min(len(rest), 1+random.IntN(10_000))])
				if rest = rest[n:]; err != nil {
					t.Error(err)
					return
				}
			}
			if err := a.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		got, err := io.ReadAll(a)
		if all.Wait(); err != nil || !bytes.Equal(got, data) {
			t.Errorf("got %d bytes back, want %d: %v", len(got), len(data), err)
		}
		_, err = a.Write([]byte("more"))
		refused(t, err, net.ErrClosed)
		check(t, errors.Join(a.Close(), b.Close()))
	}
}

// TestStreamEnds checks the errors after the peer has closed the stream, after its program was killed, and after a
// local close.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	left, right := pair(t, rc.Options{})
	a, b := left.Stream(), right.Stream()
	_, err := b.Write([]byte("the last"))
	check(t, err)
	check(t, b.Close())
	got, err := io.ReadAll(a)
	if err != nil || string(got) != "the last" {
		t.Errorf("got %q, %v", got, err)
	}
	refused(t, left.Flush(guard(t)), nil)
	eventually(t, "an error of writing", func() bool { _, err = a.Write([]byte("?")); return err != nil })
	refused(t, err, unix.ECONNRESET)

	left, right = pair(t, rc.Options{})
	a = left.Stream()
	check(t, right.Close()) // kills the program, without the end of the stream
	_, err = a.Read(make([]byte, 1))
	refused(t, err, rc.ErrDisconnected)

	a, _ = streams(t, rc.Options{SendDepth: 1, RecvDepth: 1, Linger: time.Millisecond})
	waits := make(chan error)
	go func() { _, err := a.Read(make([]byte, 1)); waits <- err }()
	go func() { _, err := a.Write(make([]byte, 100_000)); waits <- err }()
	if err := a.Close(); err != nil { // written data may be in flight
		refused(t, err, rc.ErrUnacknowledged)
	}
	for range 2 {
		refused(t, <-waits, net.ErrClosed)
	}
	refused(t, a.SetDeadline(time.Time{}), net.ErrClosed)
	check(t, a.Close())
}

func TestStreamDeadlines(t *testing.T) {
	t.Parallel()
	a, b := streams(t, rc.Options{SendDepth: 1, RecvDepth: 1, MaxMessage: 10})
	isTimeout := func(err error) {
		t.Helper()
		refused(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v, want a timeout", err)
		}
	}
	waits := make(chan error)
	go func() { _, err := a.Read(make([]byte, 1)); waits <- err }()
	check(t, a.SetReadDeadline(time.Now().Add(time.Millisecond))) // also for a waiting call
	isTimeout(<-waits)
	check(t, a.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := a.Write(make([]byte, 1000)) // which is not read
	isTimeout(err)
	check(t, a.SetDeadline(time.Time{}))
	check(t, b.SetDeadline(time.Unix(1, 0)))
	_, err = b.Read(make([]byte, 10))
	isTimeout(err)
	check(t, b.SetDeadline(time.Time{}))
	_, err = io.ReadFull(b, make([]byte, n)) // all written data arrives, once
	check(t, err)
	_, err = a.Write([]byte("goes on"))
	check(t, err)
	got := make([]byte, 7)
	if _, err = io.ReadFull(b, got); err != nil || string(got) != "goes on" {
		t.Errorf("got %q, %v", got, err)
	}
	if n, err := b.Read(nil); n != 0 || err != nil {
		t.Errorf("read into an empty slice: got %d, %v", n, err)
	}
}

// TestHTTP runs package net/http over streams.
func TestHTTP(t *testing.T) {
	t.Parallel()
	left, right := wire(t)
	l := listen(t, right, rc.Options{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s sent %s", r.RemoteAddr[:len(addressA)], strings.Repeat(string(body), 1000))
	})}
	served := make(chan error)
	go func() { served <- server.Serve(l.Streams()) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := rc.DialAddr(ctx, left, at, rc.Options{})
		if err != nil {
			return nil, err
		}
		return conn.Stream(), nil
	}}
	client := http.Client{Transport: transport, Timeout: waittest.Limit}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				answer, err := client.Post("http://"+at.String()+"/", "text/plain", strings.NewReader("how "))
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(answer.Body)
				if want := addressA + " sent " + strings.Repeat("how ", 1000); err != nil || string(body) != want {
					t.Errorf("got %d bytes, %v", len(body), err)
				}
				_ = answer.Body.Close()
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	check(t, server.Close())
	refused(t, <-served, http.ErrServerClosed)
	refused(t, only(l.Streams().Accept()), net.ErrClosed)
}
