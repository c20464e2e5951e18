// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
)

// must and do are for examples: a program looks at its errors.
func must[T any](value T, err error) T {
	do(err)
	return value
}

func do(err error) {
	if err != nil {
		panic(err)
	}
}

// hosts returns two cards on an in-memory network, which needs no privileges and no interface. A program on a
// network has hca.Open("eth0"), or client.Dial of the service.
func hosts() (left, right *verbs.Context) {
	a, b, err := hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	do(err)
	return must(verbs.Open(a)), must(verbs.Open(b))
}

// queuePair makes the queue pair of an id, with a PD and a CQ of its own.
func queuePair(device *verbs.Context, id *cm.ID) (*verbs.PD, *verbs.CQ, *verbs.QP) {
	pd, cq := must(device.AllocPD()), must(device.CreateCQ(16))
	qp := must(id.CreateQP(pd, &verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxInlineData: 64}}))
	return pd, cq, qp
}

// end closes an id with its queue pair.
func end(id *cm.ID) {
	do(id.DestroyQP())
	do(id.Close())
}

// A service at a port, and a client that resolves its queue pair and sends a datagram.
func Example() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// The service listens, takes a request, and answers with its queue pair.
	atService := must(cm.CreateEventChannel(right))
	service := must(atService.CreateID(cm.PortSpaceUDP, nil))
	do(service.Bind(netip.MustParseAddrPort("0.0.0.0:7174")))
	do(service.Listen(8))
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked := must(atService.Expect(ctx, cm.EventConnectRequest))
		pd, cq, qp := queuePair(right, asked.ID)
		mr := must(pd.AllocMR(2048, verbs.AccessLocalWrite))
		do(qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 2048)}}}))
		do(asked.ID.Accept(&cm.ConnParam{PrivateData: []byte("welcome")}))
		var wcs [1]verbs.WC
		must(cq.Wait(ctx, wcs[:]))
		_, payload := wcs[0].Payload(mr.Bytes())
		fmt.Printf("%v sent %q\n", must(asked.ID.PeerAddr()).Addr(), payload)
		end(asked.ID)
	}()

	// The client connects. The reply contains the destination of datagrams.
	atClient := must(cm.CreateEventChannel(left))
	client := must(atClient.CreateID(cm.PortSpaceUDP, nil))
	do(client.ResolveAddr(netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.2:7174"), time.Minute))
	must(atClient.Expect(ctx, cm.EventAddrResolved))
	do(client.ResolveRoute())
	must(atClient.Expect(ctx, cm.EventRouteResolved))
	pd, _, qp := queuePair(left, client)
	do(client.Connect(&cm.ConnParam{PrivateData: []byte("hello")}))
	answer := must(atClient.Expect(ctx, cm.EventEstablished))
	fmt.Printf("the service sent %q\n", bytes.TrimRight(answer.PrivateData, "\x00"))
	ah := must(pd.CreateAH(ctx, &answer.AH))
	do(qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("a datagram"), AH: ah, RemoteQPN: answer.QPN, RemoteQKey: answer.QKey,
	}}))
	<-done
	end(client)
	do(service.Close())
	do(atClient.Close())
	do(atService.Close())

	// Output:
	// the service sent "welcome"
	// 10.0.0.1 sent "a datagram"
}

// A member of a group: its queue pair is attached when the program gets the event, which contains how to
// send to the group.
func ExampleID_JoinMulticast() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	channel := must(cm.CreateEventChannel(left))
	id := must(channel.CreateID(cm.PortSpaceUDP, nil))
	do(id.Bind(netip.MustParseAddrPort("10.0.0.1:0")))
	queuePair(left, id)
	do(id.JoinMulticast(netip.MustParseAddr("239.1.2.3"), cm.JoinStateFullMember, "the program's name for it"))
	event := must(channel.Expect(ctx, cm.EventMulticastJoin))
	fmt.Printf("%v: member of %v, send to QP %v with Q_Key %v\n", event.Context, event.AH.GRH.DGID.Addr(), event.QPN, event.QKey)

	do(id.LeaveMulticast(netip.MustParseAddr("239.1.2.3")))
	end(id)
	do(channel.Close())
	// Output:
	// the program's name for it: member of 239.1.2.3, send to QP 0xffffff with Q_Key 0x01234567
}

// A connection between two endpoints: the server takes a request, and gets a message.
func ExampleEndpoint() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	objects := func(device *verbs.Context) (*verbs.PD, *verbs.QPInitAttr) {
		cq := must(device.CreateCQ(16))
		return must(device.AllocPD()), &verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxInlineData: 64}}
	}

	// The server listens. Receives are posted before the client knows that it is accepted.
	pd, init := objects(right)
	info := cm.AddrInfo{Flags: cm.AddrInfoPassive, PortSpace: cm.PortSpaceTCP, Source: netip.MustParseAddrPort("0.0.0.0:7174")}
	service := must(cm.CreateEP(ctx, &info, pd, init))
	defer service.Close()
	do(service.Listen(8))
	heard := make(chan string)
	go func() {
		defer close(heard)
		client, event, err := service.GetRequest(ctx)
		do(err)
		defer client.Close()
		mr := must(pd.AllocMR(4096, verbs.AccessLocalWrite))
		do(client.QP().PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{mr.SGE(0, 4096)}}}))
		do(client.Accept(ctx, nil))
		var wc [1]verbs.WC
		must(init.RecvCQ.Wait(ctx, wc[:]))
		heard <- fmt.Sprintf("%s sent %q", bytes.TrimRight(event.PrivateData, "\x00"), mr.Bytes()[:wc[0].ByteLen])
		do(client.Disconnected(ctx))
	}()

	// The client connects, and sends when it is accepted.
	own, ownInit := objects(left)
	server := must(cm.CreateEP(ctx, &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, Dest: netip.MustParseAddrPort("10.0.0.2:7174")}, own, ownInit))
	must(server.Connect(ctx, &cm.ConnParam{PrivateData: []byte("left")}))
	do(server.QP().PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendInline, InlineData: []byte("hello")}}))
	fmt.Println(<-heard)
	do(server.Disconnect(ctx))
	<-heard
	do(server.Close())
	// Output: left sent "hello"
}

// A service for IPv4 and IPv6 at one port. An id at 0.0.0.0 takes IPv4 alone, and one at :: takes both unless it is
// told to leave IPv4 to others.
func ExampleID_SetAFOnly() {
	a, b, err := hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")},
		[]netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")})
	do(err)
	left, right := must(verbs.Open(a)), must(verbs.Open(b))
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	atService := must(cm.CreateEventChannel(right))
	four, six := must(atService.CreateID(cm.PortSpaceUDP, "IPv4")), must(atService.CreateID(cm.PortSpaceUDP, "IPv6"))
	do(four.Bind(netip.MustParseAddrPort("0.0.0.0:7174")))
	do(six.SetAFOnly(true))
	do(six.Bind(netip.MustParseAddrPort("[::]:7174")))
	do(four.Listen(8))
	do(six.Listen(8))

	atClient := must(cm.CreateEventChannel(left))
	for _, address := range []string{"10.0.0.2:7174", "[fd00::2]:7174"} {
		client := must(atClient.CreateID(cm.PortSpaceUDP, nil))
		do(client.ResolveAddr(netip.AddrPort{}, netip.MustParseAddrPort(address), time.Minute))
		must(atClient.Expect(ctx, cm.EventAddrResolved))
		do(client.ResolveRoute())
		must(atClient.Expect(ctx, cm.EventRouteResolved))
		do(client.Connect(nil))
		asked := must(atService.Expect(ctx, cm.EventConnectRequest))
		fmt.Println(address, "connects to the one for", asked.Listener.Context)
		do(asked.ID.Close()) // which rejects it
		must(atClient.Expect(ctx, cm.EventUnreachable))
		do(client.Close())
	}
	do(four.Close())
	do(six.Close())
	do(atService.Close())
	do(atClient.Close())
	// Output:
	// 10.0.0.2:7174 connects to the one for IPv4
	// [fd00::2]:7174 connects to the one for IPv6
}
