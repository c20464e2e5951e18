// SPDX-License-Identifier: Apache-2.0

package hca_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ud"
)

// A test of a program's own protocol needs no real network and no privileges. This one sends requests and responses as
// datagrams, over a network that drops one frame in ten, at random by the seed. In a test, use t.Fatal instead of must.
func ExampleNew_lossy() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	network := memnet.New(1)
	defer network.Close()
	var ends [2]*ud.Endpoint
	for i, address := range []string{"10.0.0.1", "10.0.0.2"} {
		host, err := network.AddHost("host "+address, netip.MustParseAddr(address))
		must(err)
		ends[i], err = listen(host)
		must(err)
	}
	client, server := ends[0], ends[1]
	must(client.Resolve(ctx, server.LocalAddr()))
	must(network.Impair(memnet.Impairment{Loss: 0.1}))

	// The code under test: the server doubles a number; the client repeats its request until the response arrives.
	go func() {
		for {
			question, err := server.Recv(ctx)
			if err != nil {
				return
			}
			n := question.Data[0]
			if question.Reply(ctx, []byte{n, 2 * n}) != nil {
				return // the network is closed
			}
			question.Release()
		}
	}()
	right := 0
	for n := range byte(20) {
		answer, err := client.Request(ctx, server.LocalAddr(), []byte{n}, func(m *ud.Message) bool { return m.Data[0] == n })
		must(err)
		if answer.Data[1] == 2*n {
			right++
		}
		answer.Release()
	}
	fmt.Println(right, "right answers of 20")
	// Output: 20 right answers of 20
}
