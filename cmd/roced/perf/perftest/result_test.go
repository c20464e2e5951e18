// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"golang.org/x/sys/unix"
)

// Messages of ib_write_bw's two sides in a run with "-q 2 -s 64 -n 5", after the greeting.
const (
	pairKeys0 = "0000:0001:000022:58bd9e:000013d4:00005640f9419000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:63:00:03:00000000:\x00"
	pairKeys1 = "0000:0001:000023:941a30:000013d4:00005640f941a000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:63:00:03:00000000:\x00"
	// The result: 64 bytes, 10 messages, 0.31 and 0.18 MiB/s, 0.002928 million per second.
	pairResult = "\x00\x00\x00\x00\x00\x00\x00\x40" + "\x00\x00\x00\x00\x00\x00\x00\x0a" +
		"\x3f\xd3\x8a\xfe\xa6\x14\x20\x12" + "\x3f\xc6\xdf\xcc\x5f\x38\xcf\x0b" + "\x3f\x67\xfc\x3f\xe4\xf8\x3f\x18"
)

// TestPairsBytes compares a server with the bytes of ib_write_bw's client with two queue pairs, and a client
// with the bytes of its server.
func TestPairsBytes(t *testing.T) {
	keys := strings.Repeat(pairKeys0+pairKeys1, 2) + pairKeys0 + pairKeys0
	whole := goldenGreeting + keys + pairResult + pairKeys0
	for _, client := range []bool{false, true} {
		here, there := net.Pipe()
		there.SetDeadline(time.Now().Add(waittest.Limit))
		x := &Conversation{Conn: here, Client: client, Pairs: 2, Reports: true}
		result := make(chan error, 1)
		go func() {
			defer here.Close()
			result <- conversePairs(t, x)
		}()
		sent, theirs := "", whole
		for _, length := range []int{16, 4, 4, 2, 108, 108, 108, 108, 108, 108, 8, 8, 8, 8, 8, 108} {
			say := func() { io.WriteString(there, theirs[:length]) }
			if !client {
				say()
			}
			answer := make([]byte, length)
			if _, err := io.ReadFull(there, answer); err != nil {
				t.Fatal(err)
			}
			sent += string(answer)
			if client {
				say()
			}
			theirs = theirs[length:]
		}
		want := whole
		if !client { // a server's values are ignored
			want = goldenGreeting + keys + strings.Repeat("\x00", len(pairResult)) + pairKeys0
		}
		if sent != want {
			t.Errorf("client %t: got %q, want %q", client, sent, want)
		}
		expectBytes(t, there, "done\x00")
		if err := <-result; err != nil {
			t.Error(err)
		}
		there.Close()
	}
}

// conversePairs runs one side with the keys and the result of the run.
func conversePairs(t *testing.T, x *Conversation) error {
	if _, err := x.Greet(3); err != nil {
		return err
	}
	keys := []string{pairKeys0, pairKeys1}
	err := x.Meet(func(*Keys) (Keys, error) {
		own, err := parseKeys([]byte(keys[len(x.Own)]))
		return own, err
	})
	if err != nil {
		return err
	}
	if err := x.Prepare(); err != nil {
		return err
	}
	want := Result{64, 10, math.Float64frombits(0x3fd38afea6142012), math.Float64frombits(0x3fc6dfcc5f38cf0b), math.Float64frombits(0x3f67fc3fe4f83f18)}
	if x.Client {
		return errors.Join(x.TellResult(want), x.End())
	}
	got, err := x.AwaitResult()
	if got != want || got.PerSecond() != 2927 || got.BytesPerSecond() != 187385 {
		t.Errorf("%+v: %d and %d a second", got, got.PerSecond(), got.BytesPerSecond())
	}
	return errors.Join(err, x.AwaitEnd(), x.End())
}

func TestNewResult(t *testing.T) {
	r := NewResult(1<<20, 7, 1000)
	if r != (Result{1 << 20, 7, 1000, 1000, 0.001}) || r.PerSecond() != 1000 || r.BytesPerSecond() != 1000<<20 {
		t.Errorf("%+v", r)
	}
}

func TestImpossibleResults(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1, 1e10} {
		for _, r := range []Result{{Peak: bad}, {Average: bad}, {MessageRate: bad}} {
			if err := r.check(); !errors.Is(err, unix.EBADMSG) {
				t.Errorf("%v: %v", r, err)
			}
		}
	}
}
