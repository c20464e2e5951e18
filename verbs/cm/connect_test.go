// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// connects returns an endpoint that can connect.
func connects(t testing.TB, device *verbs.Context, to string) (*cm.Endpoint, *verbs.QPInitAttr) {
	t.Helper()
	pd, init := endpointAttr(t, device)
	e, err := cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, Dest: addr(to)}, pd, init)
	check(t, err)
	return e, init
}

// accepted is a connection between two endpoints, with the parameters that each has received.
type accepted struct {
	client, server *cm.Endpoint
	init           *verbs.QPInitAttr // of the client
	asked          *cm.Event         // at the server
	answered       *cm.Event         // at the client
}

func connect(t testing.TB, service *cm.Endpoint, client *verbs.Context, to string, ask, answer *cm.ConnParam) (c accepted) {
	t.Helper()
	c.client, c.init = connects(t, client, to)
	done := make(chan error)
	go func() {
		var err error
		if c.server, c.asked, err = service.GetRequest(guard(t)); err == nil {
			err = c.server.Accept(guard(t), answer)
		}
		done <- err
	}()
	var err error
	c.answered, err = c.client.Connect(guard(t), ask)
	check(t, err)
	check(t, <-done)
	t.Cleanup(func() { _, _ = c.client.Close(), c.server.Close() })
	return c
}

// Parameters with only private data have the READs, atomics and retries of nil parameters. Zeros are literal
// if Exact is set.
func TestZeroParametersAreDefaults(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	service := listenAt(t, b, cm.PortSpaceTCP, "0.0.0.0:7174")
	read := func(c accepted) [5]uint8 {
		attr, _, err := c.client.QP().Query()
		check(t, err)
		return [5]uint8{attr.MaxRDAtomic, attr.MaxDestRDAtomic, attr.RetryCnt, attr.RNRRetry, c.asked.RNRRetryCount}
	}
	for name, row := range map[string]struct {
		param *cm.ConnParam
		want  [5]uint8
	}{
		"nil":          {nil, [5]uint8{16, 16, 7, 7, 7}},
		"private data": {&cm.ConnParam{PrivateData: []byte("x")}, [5]uint8{16, 16, 7, 7, 7}},
		"some":         {&cm.ConnParam{InitiatorDepth: 3, RNRRetryCount: 2}, [5]uint8{3, 3, 7, 2, 2}},
		"zeros":        {&cm.ConnParam{Exact: true}, [5]uint8{}},
	} {
		c := connect(t, service, a, "10.0.0.2:7174", row.param, row.param)
		if got := read(c); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
		if !c.asked.Exact || !c.answered.Exact {
			t.Errorf("%s: Exact is not set in the peer's parameters", name)
		}
	}
}

// A peer waits 0.64 ms after an RNR NAK, unless the program sets another time. Requests have what their
// listener has.
func TestMinRNRTimer(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	service := listenAt(t, b, cm.PortSpaceTCP, "0.0.0.0:7174")
	timers := func() (of [2]time.Duration) {
		c := connect(t, service, a, "10.0.0.2:7174", nil, nil)
		for n, e := range []*cm.Endpoint{c.client, c.server} {
			attr, _, err := e.QP().Query()
			check(t, err)
			of[n] = verbs.RNRTimerDuration(attr.MinRNRTimer)
		}
		return of
	}
	if got := timers(); got[0] != 640*time.Microsecond || got[1] != got[0] {
		t.Errorf("RNR timers %v by default", got)
	}
	check(t, service.SetMinRNRTimer(verbs.RNRTimerCode(5*time.Millisecond)))
	if got := timers(); got[0] != 640*time.Microsecond || got[1] != 5120*time.Microsecond {
		t.Errorf("RNR timers %v when the listener has another", got)
	}
	check(t, service.SetMinRNRTimer(0)) // rdma_cm's
	if got := timers(); got[1] != 655360*time.Microsecond {
		t.Errorf("RNR timers %v when the listener has code 0", got)
	}
	refused(t, service.SetMinRNRTimer(32), unix.EINVAL)
	id, err := newChannel(t, a).CreateID(cm.PortSpaceUDP, nil)
	check(t, err)
	refused(t, id.SetMinRNRTimer(1), unix.EINVAL)
	check(t, id.Close())
	refused(t, id.SetMinRNRTimer(1), unix.EINVAL)
}

// An endpoint whose peer ends the connection has its requests flushed, though its program waits for
// completions and not for events.
func TestEndpointsLearnOfTheEnd(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	service := listenAt(t, b, cm.PortSpaceTCP, "0.0.0.0:7174")
	c := connect(t, service, a, "10.0.0.2:7174", nil, nil)
	check(t, c.client.QP().PostRecv([]verbs.RecvWR{{ID: 5}}))
	check(t, c.server.Disconnect(guard(t))) // which the client's endpoint agrees to
	var wc [1]verbs.WC
	_, err := c.init.RecvCQ.Wait(guard(t), wc[:])
	check(t, err)
	if wc[0].ID != 5 || wc[0].Status != verbs.WCWRFlushErr {
		t.Errorf("%+v", wc[0])
	}
	for range 2 {
		check(t, c.client.Disconnected(guard(t)))
		check(t, c.client.Disconnect(guard(t)))
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	alive := connect(t, service, a, "10.0.0.2:7174", nil, nil)
	refused(t, alive.client.Disconnected(over), context.Canceled)
	//lint:ignore SA1012 an error of the program
	refused(t, alive.client.Disconnected(nil), unix.EINVAL)
}

// A program learns that its device is gone where it waits for the end of a connection.
func TestEndpointsLearnThatTheDeviceIsGone(t *testing.T) {
	n := newNetwork(t)
	a := device(t, n, "a", "10.0.0.1")
	card, _ := newCard(t, n, "b", "10.0.0.2")
	b, err := verbs.Open(card)
	check(t, err)
	service := listenAt(t, a, cm.PortSpaceTCP, "0.0.0.0:7174")
	c := connect(t, service, b, "10.0.0.1:7174", nil, nil)
	check(t, card.Close())
	if err := c.client.Disconnected(guard(t)); err == nil || guard(t).Err() != nil {
		t.Errorf("%v when the device is gone", err)
	}
	_ = b.Close()
}

// Both ends detect path MTUs that do not match: the error of the accepting end contains both.
func TestPathMTUsDiffer(t *testing.T) {
	n := newNetwork(t)
	a := device(t, n, "a", "10.0.0.1")
	card, host := newCard(t, n, "b", "10.0.0.2")
	check(t, host.SetMTU(1500))
	service := listenAt(t, open(t, card), cm.PortSpaceTCP, "0.0.0.0:7174")
	client, _ := connects(t, a, "10.0.0.2:7174")
	defer client.Close()
	done := make(chan error)
	go func() {
		asked, _, err := service.GetRequest(guard(t))
		if err == nil {
			err = asked.Accept(guard(t), nil)
			_ = asked.Close()
		}
		done <- err
	}()
	_, err := client.Connect(guard(t), nil)
	refused(t, err, unix.ECONNREFUSED)
	err = <-done
	refused(t, err, unix.EINVAL)
	for _, part := range []string{"4096", "1024", "10.0.0.1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
