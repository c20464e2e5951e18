// SPDX-License-Identifier: Apache-2.0

package rc_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
)

// must and do panic on an error. Programs should handle errors.
func must[T any](value T, err error) T {
	do(err)
	return value
}

func do(err error) {
	if err != nil {
		panic(err)
	}
}

// hosts returns two cards on an in-memory network, which needs no privileges and no network interface. On a network,
// use hca.Open("eth0"), or client.Dial of the service.
func hosts() (left, right *verbs.Context) {
	a, b, err := cards()
	do(err)
	return must(verbs.Open(a)), must(verbs.Open(b))
}

// A server at an address and port, and a client that sends it a message.
func Example() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	at := netip.MustParseAddrPort("10.0.0.2:7174")
	listener := must(rc.Listen(right, at, rc.Options{}))
	defer listener.Close()
	served := make(chan error)
	go func() {
		client := must(listener.Accept(ctx))
		defer client.Close()
		m := must(client.Recv(ctx)) // a buffer is lent until Release
		fmt.Printf("%v sent %q\n", client.RemoteAddr().Addr(), m.Data)
		m.Release()
		do(client.Send(ctx, []byte("hello yourself")))
		_, err := client.Recv(ctx)
		served <- err
	}()

	server := must(rc.DialAddr(ctx, left, at, rc.Options{}))
	do(server.Send(ctx, []byte("hello")))
	m := must(server.Recv(ctx))
	fmt.Printf("the server sent %q\n", m.Data)
	m.Release()
	do(server.Close())
	fmt.Println(<-served)
	// Output:
	// 10.0.0.1 sent "hello"
	// the server sent "hello yourself"
	// the peer has ended the connection
}

// The server's memory is a region of a domain. The clients access it by a handle that the server sends.
func ExampleDomain() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	domain := must(rc.NewDomain(right, rc.DomainOptions{RecvDepth: 64})) // and receives that all share
	defer domain.Close()
	region := must(domain.NewRegion(4096, verbs.AccessRemoteRead|verbs.AccessRemoteWrite|verbs.AccessRemoteAtomic))
	at := netip.MustParseAddrPort("10.0.0.2:7174")
	listener := must(rc.Listen(right, at, rc.Options{Domain: domain}))
	defer listener.Close()
	served := make(chan bool)
	go func() {
		for range 2 {
			client := must(listener.Accept(ctx))
			do(client.Send(ctx, must(region.Remote().MarshalBinary())))
			_, _ = client.Recv(ctx) // the client's end
			do(client.Close())
			served <- true
		}
	}()

	for _, name := range []string{"first", "second"} {
		server := must(rc.DialAddr(ctx, left, at, rc.Options{}))
		m := must(server.Recv(ctx))
		var remote rc.RemoteRegion
		do(remote.UnmarshalBinary(m.Data))
		m.Release()
		visits := must(server.FetchAdd(ctx, remote, 0, 1)) // the server's program is not involved
		before := make([]byte, 6)
		do(server.Read(ctx, remote, 8, before))
		do(server.Write(ctx, remote, 8, []byte(name)))
		do(server.Flush(ctx)) // the write has arrived
		fmt.Printf("%s: %d before me, %q\n", name, visits, before)
		do(server.Close())
		<-served
	}
	fmt.Printf("the server sees %q\n", region.Bytes()[8:14])
	// Output:
	// first: 0 before me, "\x00\x00\x00\x00\x00\x00"
	// second: 1 before me, "first\x00"
	// the server sees "second"
}

// Many writes at once, from a region and without a copy, over a connection whose ends exchange their addresses by other
// means.
func ExampleNew() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	here, there := must(rc.New(left, rc.Options{})), must(rc.New(right, rc.Options{}))
	defer here.Close()
	defer there.Close()
	do(here.Connect(there.LocalQP()))
	do(there.Connect(here.LocalQP()))

	from := must(here.NewRegion(1<<20, 0))
	to := must(there.NewRegion(1<<20, verbs.AccessRemoteWrite))
	copy(from.Bytes()[1<<19:], "in the middle")
	const part = 1 << 17
	var writes []rc.Request
	for at := 0; at < from.Len(); at += part {
		writes = append(writes, rc.Request{Opcode: verbs.WRRDMAWrite, Region: from, Offset: at, Length: part, Remote: to.Remote(), RemoteOffset: at})
	}
	must(here.Post(ctx, writes))
	do(here.Flush(ctx)) // until all have completed; Do combines both
	fmt.Printf("%q\n", to.Bytes()[1<<19:][:13])
	// Output: "in the middle"
}

// A stream of bytes, as net.Conn and net.Listener.
func ExampleConn_Stream() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	at := netip.MustParseAddrPort("10.0.0.2:7174")
	listener := must(rc.Listen(right, at, rc.Options{})).Streams()
	defer listener.Close()
	go func() {
		conn := must(listener.Accept())
		defer conn.Close()
		must(io.Copy(conn, struct{ io.Reader }{conn})) // echo until the end of the data
	}()
	stream := must(rc.DialAddr(ctx, left, at, rc.Options{})).Stream()
	defer stream.Close()
	must(io.WriteString(stream, "as over TCP"))
	do(stream.CloseWrite())
	fmt.Printf("%s\n", must(io.ReadAll(stream)))
	// Output: as over TCP
}

// A handle is exchanged as text, and a lock is acquired in the memory that it addresses.
func ExampleConn_CompareSwap() {
	left, right := hosts()
	defer left.Close()
	defer right.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	here, there := must(rc.New(left, rc.Options{})), must(rc.New(right, rc.Options{}))
	defer here.Close()
	defer there.Close()
	do(here.Connect(there.LocalQP()))
	do(there.Connect(here.LocalQP()))
	text := must(there.NewRegion(8, verbs.AccessRemoteAtomic)).Remote().String()

	lock := must(rc.ParseRemoteRegion(text))
	const free, mine = 0, 1
	for range 2 {
		was := must(here.CompareSwap(ctx, lock, 0, free, mine))
		fmt.Println("taken:", was == free)
	}
	// Output:
	// taken: true
	// taken: false
}
