// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ud"
)

// must panics on an error. Programs should handle errors.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// hosts returns two cards on an in-memory network, which needs no privileges and no network interface. On a network,
// use hca.Open("eth0").
func hosts() (left, right *verbs.Context) {
	a, b, err := hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	if err != nil {
		panic(err)
	}
	return must(verbs.Open(a)), must(verbs.Open(b))
}

// A message and its response. The peer's address is a text, which is exchanged by other means: a configuration file, a
// TCP connection.
func Example() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	server := must(ud.New(right, ud.Options{}))
	defer server.Close()
	text := server.LocalAddr().String() // 10.0.0.2:0x…

	client := must(ud.Dial(ctx, left, must(ud.ParseAddr(text)), ud.Options{}))
	defer client.Close()
	if err := client.Send(ctx, ud.Addr{}, []byte("hello")); err != nil { // to the peer of Dial
		panic(err)
	}

	question := must(server.Recv(ctx))
	fmt.Printf("%v sent %q\n", question.From.IP(), question.Data)
	if err := question.Reply(ctx, []byte("hello yourself")); err != nil {
		panic(err)
	}
	question.Release()

	answer := must(client.Recv(ctx))
	fmt.Printf("%v answered %q\n", answer.From.IP(), answer.Data)
	answer.Release()
	// Output:
	// 10.0.0.1 sent "hello"
	// 10.0.0.2 answered "hello yourself"
}

// A group: one message reaches all members.
func ExampleEndpoint_Join() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx := context.Background()
	group := netip.MustParseAddr("239.1.2.3")

	var members []*ud.Endpoint
	for range 3 {
		member := must(ud.New(right, ud.Options{}))
		defer member.Close()
		if err := member.Join(group); err != nil {
			panic(err)
		}
		members = append(members, member)
	}
	speaker := must(ud.New(left, ud.Options{}))
	defer speaker.Close()
	if err := speaker.Send(ctx, ud.Group(group), []byte("tick")); err != nil {
		panic(err)
	}
	for _, member := range members {
		m := must(member.Recv(ctx))
		fmt.Printf("%v to %v: %s\n", m.From.IP(), m.To.IP(), m.Data)
		m.Release()
	}
	// Output:
	// 10.0.0.1 to 239.1.2.3: tick
	// 10.0.0.1 to 239.1.2.3: tick
	// 10.0.0.1 to 239.1.2.3: tick
}

// A client discovers a server's queue pair number: it sends a request to a group that the server has joined. The
// reply's From is the server's address.
func ExampleEndpoint_Discover() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group := netip.MustParseAddr("239.1.2.3")

	server := must(ud.New(right, ud.Options{}))
	defer server.Close()
	if err := server.Join(group); err != nil {
		panic(err)
	}
	go func() {
		for {
			m, err := server.Recv(ctx)
			if err != nil {
				return
			}
			_ = m.Reply(ctx, []byte("here")) // to the sender, from this endpoint's address
			m.Release()
		}
	}()

	client := must(ud.New(left, ud.Options{}))
	defer client.Close()
	found := must(client.Discover(ctx, ud.Group(group), []byte("which server?")))
	fmt.Println(found.From == server.LocalAddr(), string(found.Data))
	found.Release()
	// Output: true here
}

// A batch of messages per call, sent back to their senders.
func ExampleEndpoint_RecvBatch() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, client := must(ud.New(right, ud.Options{})), must(ud.New(left, ud.Options{}))
	defer server.Close()
	defer client.Close()

	questions := make([]ud.Message, 10)
	for i := range questions {
		questions[i] = ud.Message{To: server.LocalAddr(), Data: []byte{byte(i)}}
	}
	must(client.SendBatch(ctx, questions))

	messages := make([]ud.Message, 32)
	for echoed := 0; echoed < len(questions); {
		n := must(server.RecvBatch(ctx, messages))
		for i := range messages[:n] {
			messages[i].To = messages[i].From
		}
		must(server.SendBatch(ctx, messages[:n]))
		server.Release(messages[:n])
		echoed += n
	}

	sum := 0
	for answered := 0; answered < len(questions); {
		n := must(client.RecvBatch(ctx, messages))
		for _, m := range messages[:n] {
			sum += int(m.Data[0])
		}
		client.Release(messages[:n])
		answered += n
	}
	fmt.Println(sum)
	// Output: 45
}

// Code written for package net works unchanged.
func ExampleEndpoint_PacketConn() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	var server net.PacketConn = must(ud.New(right, ud.Options{})).PacketConn()
	defer server.Close()
	var client net.PacketConn = must(ud.New(left, ud.Options{})).PacketConn()
	defer client.Close()

	must(client.WriteTo([]byte("hello"), server.LocalAddr()))
	buffer := make([]byte, 1500)
	n, from, err := server.ReadFrom(buffer)
	fmt.Println(string(buffer[:n]), from == client.LocalAddr(), err)

	_ = server.SetReadDeadline(time.Now().Add(-time.Second))
	_, _, err = server.ReadFrom(buffer)
	fmt.Println(err.(net.Error).Timeout())
	// Output:
	// hello true <nil>
	// true
}

// A publisher limited to the rate of its slowest receiver. Without a rate it sends as fast as possible, and receivers
// without a free buffer drop messages.
func ExampleOptions() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	subscriber := must(ud.New(right, ud.Options{RecvDepth: 1024}))
	defer subscriber.Close()
	publisher := must(ud.Dial(ctx, left, subscriber.LocalAddr(), ud.Options{Rate: 20_000}))
	defer publisher.Close()
	go func() {
		for i := range 1000 {
			if err := publisher.Send(ctx, ud.Addr{}, fmt.Append(nil, i)); err != nil {
				panic(err)
			}
		}
	}()
	for range 1000 {
		m := must(subscriber.Recv(ctx))
		m.Release()
	}
	fmt.Println(subscriber.Stats().Received, "received, dropped for lack of a buffer:", must(subscriber.Drops())["engine drop_no_receive"])
	// Output: 1000 received, dropped for lack of a buffer: 0
}
