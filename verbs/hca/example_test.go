// SPDX-License-Identifier: Apache-2.0

package hca_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ud"
)

// An in-memory network with three hosts: a server, a client, and one that moves its address away. Errors are left out.
func ExampleNew() {
	ctx := context.Background()
	network := memnet.New(1) // the seed of random events
	defer network.Close()    // with all hosts and their cards
	first, _ := network.AddHost("first", netip.MustParseAddr("10.0.0.1"))
	second, _ := network.AddHost("second", netip.MustParseAddr("10.0.0.2"))

	server, _ := listen(first)
	client, _ := listen(second)
	_ = client.Send(ctx, server.LocalAddr(), []byte("are you there?"))
	message, _ := server.Recv(ctx)
	fmt.Printf("%s asks: %s\n", message.From.IP(), message.Data)
	message.Release()

	_ = second.SetMTU(1500)                        // as "ip link set" does
	_ = first.SetAddresses()                       // removes the address, and with it reachability
	_ = network.Impair(memnet.Impairment{Loss: 1}) // no more packets arrive
	_ = client.Send(ctx, server.LocalAddr(), []byte("?"))
	first.SetUp(false)
	// Output: 10.0.0.2 asks: are you there?
}

// listen creates a card on a host, and an endpoint on the card.
func listen(host *memnet.Host) (*ud.Endpoint, error) {
	card, err := hca.New(host)
	if err != nil {
		return nil, err
	}
	program, err := verbs.Open(card)
	if err != nil {
		return nil, err
	}
	return ud.New(program, ud.Options{})
}

// Two independent parts of a program share a card. Errors are left out.
func ExampleCard_NewSession() {
	card, other, _ := hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	defer card.Close() // and all its sessions
	defer other.Close()

	session, _ := card.NewSession(hca.SessionConfig{Limits: hca.Limits{QPs: 4, Memory: 16 << 20}})
	program, _ := verbs.Open(session)
	device, _ := program.QueryDevice()
	fmt.Println("at most", device.MaxQP, "queue pairs")
	_ = program.Close() // frees only the session's resources

	whole, _ := verbs.Open(card) // the card's own session, of the program that opened it
	device, _ = whole.QueryDevice()
	fmt.Println("at most", device.MaxQP, "queue pairs")
	// Output:
	// at most 4 queue pairs
	// at most 16384 queue pairs
}
