// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// endpointAttr makes what an endpoint needs.
func endpointAttr(t testing.TB, device *verbs.Context) (*verbs.PD, *verbs.QPInitAttr) {
	t.Helper()
	pd, err := device.AllocPD()
	check(t, err)
	cq, err := device.CreateCQ(16)
	check(t, err)
	return pd, &verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4}}
}

// listenAt makes an endpoint that listens.
func listenAt(t testing.TB, device *verbs.Context, space cm.PortSpace, at string) *cm.Endpoint {
	t.Helper()
	return listenFor(t, device, cm.AddrInfo{PortSpace: space, Source: addr(at)})
}

func listenFor(t testing.TB, device *verbs.Context, info cm.AddrInfo) *cm.Endpoint {
	t.Helper()
	info.Flags = cm.AddrInfoPassive
	pd, init := endpointAttr(t, device)
	e, err := cm.CreateEP(guard(t), &info, pd, init)
	check(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	check(t, e.Listen(0))
	return e
}

// Two endpoints are connected, send, and part; the one that listens takes the next.
func TestEndpoints(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1", "fd00::1"), device(t, n, "b", "10.0.0.2", "fd00::2")
	pd, init := endpointAttr(t, a)
	reliable := listenAt(t, b, cm.PortSpaceTCP, "[::]:7174")
	unreliable := listenFor(t, b, cm.AddrInfo{PortSpace: cm.PortSpaceTCP, QPType: verbs.QPTypeUC, Source: addr("[::]:7175")})
	for _, row := range []struct {
		to      string
		kind    verbs.QPType
		service *cm.Endpoint
	}{{"10.0.0.2:7174", 0, reliable}, {"[fd00::2]:7174", verbs.QPTypeRC, reliable}, {"10.0.0.2:7175", verbs.QPTypeUC, unreliable}} {
		served := make(chan error)
		go func() { served <- serveOne(guard(t), row.service) }()
		client, err := cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, QPType: row.kind, Dest: addr(row.to)}, pd, init)
		check(t, err)
		event, err := client.Connect(guard(t), &cm.ConnParam{PrivateData: []byte("hello"), RetryCount: 7, RNRRetryCount: 7})
		check(t, err)
		if string(event.PrivateData[:5]) != "hello" {
			t.Errorf("%q", event.PrivateData)
		}
		check(t, client.QP().PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled}}))
		var wc [1]verbs.WC
		_, err = init.SendCQ.Wait(guard(t), wc[:])
		check(t, err)
		check(t, wc[0].Err())
		check(t, client.Disconnect(guard(t)))
		check(t, <-served)
		check(t, client.Close())
	}
}

// serveOne accepts a request with its parameters, receives a message, and waits for the end.
func serveOne(ctx context.Context, service *cm.Endpoint) error {
	e, event, err := service.GetRequest(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.QP().PostRecv([]verbs.RecvWR{{}}); err != nil {
		return err
	}
	if err := e.Accept(ctx, &cm.ConnParam{PrivateData: event.PrivateData[:5], RNRRetryCount: 7}); err != nil {
		return err
	}
	if err := e.Disconnected(ctx); err != nil {
		return err
	}
	return e.Disconnect(ctx)
}

// What cannot be made, is refused or is given up leaves nothing behind.
func TestEndpointsFail(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	pd, init := endpointAttr(t, a)
	tcp := func(to string) *cm.AddrInfo { return &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, Dest: addr(to)} }
	_, err := cm.CreateEP(guard(t), nil, pd, init)
	refused(t, err, unix.EINVAL)
	_, err = cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: 7}, pd, init)
	refused(t, err, unix.EINVAL)
	_, err = cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceTCP}, pd, init)
	refused(t, err, unix.EINVAL)
	nobody, err := cm.CreateEP(guard(t), tcp("10.0.0.2:1"), pd, init)
	check(t, err)
	_, err = nobody.Connect(guard(t), nil)
	refused(t, err, unix.ECONNREFUSED)
	check(t, nobody.Close())
	service := listenAt(t, b, cm.PortSpaceTCP, "0.0.0.0:7174")
	client, err := cm.CreateEP(guard(t), tcp("10.0.0.2:7174"), pd, init)
	check(t, err)
	some, cancel := context.WithCancel(context.Background())
	closed, ended := make(chan struct{}), make(chan error)
	go func() {
		asked, _, err := service.GetRequest(guard(t)) // which is not accepted
		cancel()
		<-closed
		if err == nil {
			err = asked.Close()
		}
		ended <- err
	}()
	_, err = client.Connect(some, nil)
	refused(t, err, context.Canceled)
	check(t, client.Close())
	close(closed)
	check(t, <-ended)
	check(t, pd.Close())
}

// TestAcceptAtOnce: of several goroutines that accept one request, one does.
func TestAcceptAtOnce(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	pd, init := endpointAttr(t, a)
	service := listenAt(t, b, cm.PortSpaceTCP, "0.0.0.0:7174")
	client, err := cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, Dest: addr("10.0.0.2:7174")}, pd, init)
	check(t, err)
	connected := make(chan error, 1)
	go func() {
		_, err := client.Connect(guard(t), nil)
		connected <- err
	}()
	asked, _, err := service.GetRequest(guard(t))
	check(t, err)
	var all sync.WaitGroup
	var accepted atomic.Int32
	for range 4 {
		all.Go(func() {
			if asked.ID.Accept(nil) == nil {
				accepted.Add(1)
			}
		})
	}
	all.Wait()
	check(t, <-connected)
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d have accepted it", n)
	}
	check(t, asked.Close())
	check(t, client.Close())
}

// Datagrams have endpoints too.
func TestEndpointsOfDatagrams(t *testing.T) {
	n := newNetwork(t)
	a, b := device(t, n, "a", "10.0.0.1"), device(t, n, "b", "10.0.0.2")
	pd, init := endpointAttr(t, a)
	service := listenAt(t, b, cm.PortSpaceUDP, "0.0.0.0:7174")
	check(t, service.SetServiceType(0x20))
	numbers := make(chan verbs.QPN, 1)
	go func() {
		defer close(numbers)
		asked, event, err := service.GetRequest(guard(t))
		if err != nil {
			return
		}
		if event.AH.GRH.TrafficClass != 0x20 { // the service's
			t.Errorf("to answer to: %+v", event.AH)
		}
		if asked.Accept(guard(t), &cm.ConnParam{}) == nil {
			numbers <- asked.QP().Number()
		}
		_ = asked.Close()
	}()
	client, err := cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceUDP, Dest: netip.MustParseAddrPort("10.0.0.2:7174")}, pd, init)
	check(t, err)
	event, err := client.Connect(guard(t), nil)
	check(t, err)
	if n := <-numbers; n == 0 || event.QPN != n {
		t.Errorf("queue pair %v, not %v", event.QPN, n)
	}
	<-numbers
	check(t, client.Disconnect(guard(t)))
	check(t, client.Close())
}
