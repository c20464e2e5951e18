// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
	"github.com/spf13/pflag"
)

// newBadNetwork returns a network with hosts a (10.1.0.1) and b (10.1.0.2) that is impaired by flags.
func newBadNetwork(t *testing.T, flags ...string) *Network {
	t.Helper()
	var w ImpairmentFlags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	w.Add(set, "")
	o, err := ParseOptions(DefaultPools, []string{"a=10.1.0.1", "b=10.1.0.2"})
	if err := errors.Join(err, set.Parse(flags), w.Fill(&o)); err != nil {
		t.Fatal(err)
	}
	n, err := New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func contextOn(t *testing.T, d Device) *verbs.Context {
	t.Helper()
	s, err := d.NewSession(hca.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := verbs.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func endpointOn(t *testing.T, d Device) *ud.Endpoint {
	t.Helper()
	c := contextOn(t, d)
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestSameLossEachTime: the same seed loses the same messages, another seed loses others, and each loss is counted.
func TestSameLossEachTime(t *testing.T) {
	t.Parallel()
	const count = 400
	arrived := func(seed string) (got []byte) {
		n := newBadNetwork(t, "--loss", "25%", "--seed", seed)
		from, to := endpointOn(t, n.Devices()[1]), endpointOn(t, n.Devices()[2])
		for i := range count {
			if err := from.Send(t.Context(), to.LocalAddr(), []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			// Wait until the message has arrived or is counted as lost.
			for uint64(len(got))+n.Impaired().Lost <= uint64(i) {
				ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
				m, err := to.Recv(ctx)
				stop()
				if err == nil {
					got = append(got, m.Data[0])
					m.Release()
				} else if t.Context().Err() != nil {
					t.Fatal(err)
				}
			}
		}
		if lost := n.Impaired().Lost; lost != uint64(count-len(got)) || lost < count/8 || lost > count/2 {
			t.Errorf("lost %d of %d messages, and received %d", lost, count, len(got))
		}
		return got
	}
	first := arrived("7")
	if !slices.Equal(first, arrived("7")) {
		t.Error("the same seed loses other messages")
	}
	if slices.Equal(first, arrived("8")) {
		t.Error("another seed loses the same messages")
	}
}

// TestNetworkThatMarks: hosts of a network that marks packets use congestion control. Marking requires a rate.
func TestNetworkThatMarks(t *testing.T) {
	t.Parallel()
	n := newBadNetwork(t, "--rate", "50mbit", "--mark", "100us")
	at := netip.MustParseAddrPort("10.1.0.2:7175")
	listener, err := rc.Listen(contextOn(t, n.Devices()[2]), at, rc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed := make(chan *rc.Conn, 1)
	t.Cleanup(func() {
		if c := <-dialed; c != nil {
			c.Close()
		}
	})
	go func() {
		c, err := rc.DialAddr(t.Context(), contextOn(t, n.Devices()[1]), at, rc.Options{})
		dialed <- c
		if err == nil {
			err = c.Send(t.Context(), make([]byte, 4096))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	c, err := listener.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Recv(t.Context()); err != nil {
		t.Fatal(err)
	}
	if marked := count(t, n.Devices()[2], "np_ecn_marked_roce_packets"); marked == 0 || n.Impaired().Marked == 0 {
		t.Errorf("marked %d packets; %+v", marked, n.Impaired())
	}
	var w ImpairmentFlags
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	w.Add(f, "")
	if err := f.Parse([]string{"--mark", "1ms"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Fill(&Options{}); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("--mark without --rate: %v", err)
	}
}

// TestConnectionIsReliable: a connection over a bad network retransmits lost packets and delivers all messages.
func TestConnectionIsReliable(t *testing.T) {
	t.Parallel()
	const messages = 500
	n := newBadNetwork(t, "--loss", "2%", "--duplicate", "1%", "--reorder", "1%", "--delay", "50us", "--rate", "10gbit", "--seed", "7")
	at := netip.MustParseAddrPort("10.1.0.2:7174")
	listener, err := rc.Listen(contextOn(t, n.Devices()[2]), at, rc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closes := func(c io.Closer) {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	defer closes(listener)
	from := contextOn(t, n.Devices()[1])
	var sender *rc.Conn
	var sending sync.WaitGroup
	defer func() {
		sending.Wait()
		if sender != nil {
			closes(sender)
		}
	}()
	sending.Go(func() {
		var err error
		sender, err = rc.DialAddr(t.Context(), from, at, rc.Options{})
		for i := 0; i < messages && err == nil; i++ {
			err = sender.Send(t.Context(), []byte{byte(i)})
		}
		if err != nil {
			t.Error(err)
		}
	})
	c, err := listener.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closes(c)
	for i := range messages {
		m, err := c.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Data) != 1 || m.Data[0] != byte(i) {
			t.Fatalf("message %d is %v", i, m.Data)
		}
		m.Release()
	}
	if again, lost := count(t, n.Devices()[1], "retransmits"), n.Impaired(); again == 0 || lost.Lost == 0 {
		t.Errorf("retransmitted %d packets; %+v", again, lost)
	}
}

// TestSchedule: programs are notified of the events of their host in the schedule.
func TestSchedule(t *testing.T) {
	t.Parallel()
	list, err := parseSchedule("x", strings.NewReader("# what happens\n20ms a up\n0s a down # first\n\n40ms a address 10.1.0.9,fd01::9\n50ms gone down\n"))
	if err != nil || len(list) != 4 || list[0].what != linkDown {
		t.Fatalf("%+v, %v", list, err)
	}
	n := newBadNetwork(t)
	c := contextOn(t, n.Devices()[1])
	n.schedule.Go(func() { n.follow(list) })
	for _, want := range []verbs.EventType{verbs.EventPortErr, verbs.EventPortActive, verbs.EventGIDChange} {
		for {
			event, err := c.GetAsyncEvent(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if event.Type == want {
				break
			}
		}
	}
	for {
		if entry, err := c.QueryGID(1, 0); err == nil && entry.GID.Addr().Unmap().String() == "10.1.0.9" {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the address has not changed")
		}
	}
}

// TestScheduleErrors: errors in a schedule are reported with their line numbers.
func TestScheduleErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"soon a down": "not a time", "1s a": "must have a time", "1s a sideways": "an event must be", "1s a address x": "not an IP address", "1s a address": "an event must be",
		"1s a down now": "an event must be",
	} {
		if _, err := parseSchedule("file", strings.NewReader("\n"+text)); !errors.Is(err, verbs.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "file, line 2") {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

func TestSharesAndRates(t *testing.T) {
	t.Parallel()
	var s share
	var b bits
	if err := errors.Join(s.Set("0.1%"), b.Set("10gbit")); err != nil || s < 0.000999 || s > 0.001001 || b != 10_000_000_000 {
		t.Errorf("%v, %v, %v", s, b, err)
	}
	for _, wrong := range []string{"", "-1%", "101%", "1", "0.5", "x", "NaN", "NaN%"} {
		if s.Set(wrong) == nil {
			t.Errorf("%q is accepted as a share", wrong)
		}
	}
	for _, wrong := range []string{"", "10", "0gbit", "-1bit", "xbit", "NaNbit"} {
		if b.Set(wrong) == nil {
			t.Errorf("%q is accepted as a rate", wrong)
		}
	}
}
