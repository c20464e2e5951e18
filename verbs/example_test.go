// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
)

// program is the set of objects that a program in these examples has on a card.
type program struct {
	ctx *verbs.Context
	pd  *verbs.PD
	mr  *verbs.MR
	cq  *verbs.CQ
	qp  *verbs.QP
}

// open creates one of each object. Errors are ignored here; a program should print them, since they contain the remedy.
func open(card provider.Provider) (p program) {
	p.ctx, _ = verbs.Open(card)
	p.pd, _ = p.ctx.AllocPD()
	p.mr, _ = p.pd.AllocMR(64<<10, verbs.AccessLocalWrite)
	p.cq, _ = p.ctx.CreateCQ(64)
	p.qp, _ = p.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16},
	})
	_ = p.qp.Activate(0x11111111)
	return p
}

// newCards creates two cards on an in-memory network, 10.0.0.1 and 10.0.0.2. hca.Open("eth0") opens one on an
// interface.
func newCards() (left, right *hca.Card) {
	left, right, _ = hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	return left, right
}

// handle creates an address handle to a host.
func (p *program) handle(ctx context.Context, address string) *verbs.AH {
	gid := verbs.GIDFromAddr(netip.MustParseAddr(address))
	ah, _ := p.pd.CreateAH(ctx, &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid}})
	return ah
}

// message returns a send request with a text. The first half of the region is for received data, the second for data to
// send.
func (p *program) message(text string, ah *verbs.AH, to verbs.QPN) []verbs.SendWR {
	const half = 32 << 10
	length := copy(p.mr.Bytes()[half:], text)
	return []verbs.SendWR{{
		Opcode: verbs.WRSend, SGList: []verbs.SGE{p.mr.SGE(half, length)}, AH: ah, RemoteQPN: to, RemoteQKey: 0x11111111,
	}}
}

// receive posts receives of 2048 bytes each, numbered from 0.
func (p *program) receive(count int) {
	for i := range count {
		_ = p.qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{p.mr.SGE(i*2048, 2048)}}})
	}
}

// payload returns the data of a completed receive.
func (p *program) payload(wc *verbs.WC) (verbs.GRH, []byte) {
	return wc.Payload(p.mr.Bytes()[wc.ID*2048:])
}

// Hello over UD: one datagram to another host.
func Example() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	ctx := context.Background()

	server.receive(1) // buffers are posted before messages come
	ah := client.handle(ctx, "10.0.0.2")
	_ = client.qp.PostSend(client.message("hello", ah, server.qp.Number()))

	var wcs [1]verbs.WC
	_, _ = server.cq.Wait(ctx, wcs[:])
	grh, payload := server.payload(&wcs[0]) // a receive buffer begins with 40 bytes of GRH
	fmt.Printf("%s from %v\n", payload, grh.SGID().Addr())
	// Output: hello from 10.0.0.1
}

// The completion of a receive has everything needed for a response: the sender's address, in the GRH, and the number of
// its queue pair.
func ExamplePD_CreateAHFromWC() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	ctx := context.Background()
	client.receive(1)
	server.receive(1)
	_ = client.qp.PostSend(client.message("who are you?", client.handle(ctx, "10.0.0.2"), server.qp.Number()))

	var wcs [1]verbs.WC
	_, _ = server.cq.Wait(ctx, wcs[:])
	grh, _ := server.payload(&wcs[0])
	back, _ := server.pd.CreateAHFromWC(&wcs[0], grh, 1) // never waits; keep it for further responses
	_ = server.qp.PostSend(server.message("the server", back, wcs[0].SrcQP))

	_, _ = client.cq.Wait(ctx, wcs[:])
	_, answer := client.payload(&wcs[0])
	fmt.Printf("%s\n", answer)
	// Output: the server
}

// Receiving a group's messages takes two steps: the join makes the host a member, so that switches forward the group's
// packets here; the attach delivers them to the queue pair.
func ExampleQP_AttachMcast() {
	left, right := newCards()
	sender, member := open(left), open(right)
	defer sender.ctx.Close()
	defer member.ctx.Close()
	ctx := context.Background()
	group := netip.MustParseAddr("239.1.2.3")

	membership, _ := member.ctx.JoinMulticast(group, verbs.JoinFullMember)
	defer membership.Close()
	_ = member.qp.AttachMcast(membership.MGID(), membership.MLID())
	member.receive(1)

	sends, _ := sender.ctx.JoinMulticast(group, verbs.JoinSendOnlyFullMember)
	defer sends.Close()
	attr, _ := sends.AHAttr()
	ah, _ := sender.pd.CreateAH(ctx, &attr)
	_ = sender.qp.PostSend(sender.message("to all of you", ah, verbs.MulticastQPN))

	var wcs [1]verbs.WC
	_, _ = member.cq.Wait(ctx, wcs[:])
	grh, payload := member.payload(&wcs[0])
	fmt.Printf("%s, sent to %v\n", payload, grh.DGID().Addr())
	// Output: to all of you, sent to 239.1.2.3
}

// Wait sleeps while the queue is empty, until its context is done; Poll in a loop would spin.
func ExampleCQ_Wait() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	const messages = 10
	server.receive(messages)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	again := client.message("again", client.handle(ctx, "10.0.0.2"), server.qp.Number())
	for range messages { // a buffer may be sent many times, and be reused after all of these requests have completed
		_ = client.qp.PostSend(again)
	}

	var wcs [4]verbs.WC
	for got := 0; got < messages; {
		n, err := server.cq.Wait(ctx, wcs[:])
		if err != nil { // the context is done, or the card is closed or has failed
			fmt.Println(err)
			return
		}
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				fmt.Println(err) // contains the remedy
			}
		}
		got += n
	}
	fmt.Println("all there")
	// Output: all there
}

// Asynchronous events report changes of a device other than completions.
func ExampleContext_GetAsyncEvent() {
	network := memnet.New(0)
	defer network.Close()
	host, _ := network.AddHost("host", netip.MustParseAddr("10.0.0.1"))
	card, _ := hca.New(host)
	c, _ := verbs.Open(card)
	defer c.Close()

	host.SetUp(false) // the cable is unplugged
	ctx := context.Background()
	event, _ := c.GetAsyncEvent(ctx)
	port, _ := c.QueryPort(event.Port)
	fmt.Println(event.Type, port.State)
	host.SetUp(true)
	event, _ = c.GetAsyncEvent(ctx)
	port, _ = c.QueryPort(event.Port)
	fmt.Println(event.Type, port.State)
	// Output:
	// port error down
	// port active active
}

// A server with a queue pair for each client does not need receives for each of them: the queue pairs share an SRQ.
func ExamplePD_CreateSRQ() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	ctx := context.Background()

	srq, _ := server.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 64})
	for i := range 8 {
		_ = srq.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{server.mr.SGE(i*2048, 2048)}}})
	}
	_ = srq.Modify(&verbs.SRQAttr{Limit: 6}, verbs.SRQLimit) // an event when fewer than 6 are left
	ah := client.handle(ctx, "10.0.0.2")
	for _, name := range []string{"one", "two", "three"} {
		qp, _ := server.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: server.cq, RecvCQ: server.cq, SRQ: srq})
		_ = qp.Activate(0x11111111)
		_ = client.qp.PostSend(client.message("to queue pair "+name, ah, qp.Number()))
		var wcs [1]verbs.WC
		_, _ = server.cq.Wait(ctx, wcs[:])
		_, payload := server.payload(&wcs[0])
		fmt.Printf("%s\n", payload)
	}
	event, _ := server.ctx.GetAsyncEvent(ctx)
	fmt.Println(event.Type, event.SRQ == srq) // time to post more
	// Output:
	// to queue pair one
	// to queue pair two
	// to queue pair three
	// SRQ limit reached true
}

// Connected queue pairs exchange the attributes of their ends, here in memory, and connect. Then one reads and writes
// the other's memory, whose program is not involved.
func ExampleQP_Connect() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()

	connected := func(p program) *verbs.QP {
		qp, _ := p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 16}})
		return qp
	}
	attr := verbs.QPAttr{
		AccessFlags: verbs.AccessRemoteRead | verbs.AccessRemoteWrite, MaxRDAtomic: 1, MaxDestRDAtomic: 1,
		MinRNRTimer: verbs.RNRTimerCode(640 * time.Microsecond), Timeout: verbs.TimeoutCode(67 * time.Millisecond), RetryCnt: 7, RNRRetry: 7,
	}
	ours, theirs := connected(client), connected(server)
	for _, end := range []struct {
		own, peer *verbs.QP
		address   string
	}{{ours, theirs, "10.0.0.2"}, {theirs, ours, "10.0.0.1"}} {
		attr.DestQPN, attr.AHAttr.GRH.DGID = end.peer.Number(), verbs.GIDFromAddr(netip.MustParseAddr(end.address))
		_ = end.own.Connect(&attr)
	}

	remote, _ := server.pd.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
	copy(client.mr.Bytes(), "written from afar")
	_ = ours.PostSend([]verbs.SendWR{
		{Opcode: verbs.WRRDMAWrite, SGList: []verbs.SGE{client.mr.SGE(0, 17)}, RemoteAddr: remote.IOVA(), RKey: remote.RKey()},
		{
			Opcode: verbs.WRRDMARead, SGList: []verbs.SGE{client.mr.SGE(100, 17)}, RemoteAddr: remote.IOVA(), RKey: remote.RKey(),
			Flags: verbs.SendSignaled,
		},
	})
	var wcs [1]verbs.WC
	_, _ = client.cq.Wait(context.Background(), wcs[:])
	fmt.Printf("%v, %d bytes: %s, and here %s\n", wcs[0].Opcode, wcs[0].ByteLen, remote.Bytes()[:17], client.mr.Bytes()[100:117])
	// Output:
	// RDMA read, 17 bytes: written from afar, and here written from afar
}

// Times of connections are codes; code 0 is not a short time.
func ExampleRNRTimerCode() {
	for _, code := range []uint8{0, 1, verbs.RNRTimerCode(5 * time.Millisecond)} {
		fmt.Println(code, verbs.RNRTimerDuration(code))
	}
	fmt.Println(verbs.TimeoutCode(time.Second), verbs.TimeoutDuration(18))
	// Output:
	// 0 655.36ms
	// 1 10µs
	// 18 5.12ms
	// 18 1.073741824s
}

// One goroutine serves several completion queues through a channel, as with ibv_get_cq_event(3).
func ExampleCompChannel() {
	left, right := newCards()
	client, server := open(left), open(right)
	defer client.ctx.Close()
	defer server.ctx.Close()
	ctx := context.Background()

	channel, _ := server.ctx.CreateCompChannel()
	cq, _ := server.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 64, Channel: channel, CQContext: "requests"})
	server.qp, _ = server.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: server.cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: 16},
	})
	_ = server.qp.Activate(0x11111111)
	server.receive(1)
	_, _ = cq.ReqNotify(verbs.CQNextComp) // armed before completions arrive
	_ = client.qp.PostSend(client.message("hello", client.handle(ctx, "10.0.0.2"), server.qp.Number()))

	got, _ := channel.Get(ctx) // sleeps; the channel is also a descriptor
	_ = got.AckEvents(1)
	_, _ = got.ReqNotify(verbs.CQNextComp) // armed again before it is polled, so that no completion is missed
	var wcs [4]verbs.WC
	n, _ := got.Poll(wcs[:])
	_, payload := server.payload(&wcs[0])
	fmt.Printf("%d of %v: %s\n", n, got.CQContext(), payload)
	// Output: 1 of requests: hello
}
