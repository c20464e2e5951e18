// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/netdev"
)

// IP between two hosts. Both are in this program, on an in-memory network, and so are their interfaces, so that the
// example runs without root. A program on a network has hca.Open("eth0"), and leaves Options.Interface out: then it
// gets a TUN of the kernel, with Options.Addresses, and ping, TCP and all else go through it.
func Example() {
	left, right, err := hca.OpenPair([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, []netip.Addr{netip.MustParseAddr("10.0.0.2")})
	must(err)
	hosts := []*host{newHost("192.168.7.1/24"), newHost("192.168.7.2/24")}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	for i, card := range []*hca.Card{left, right} {
		c, err := verbs.Open(card)
		must(err)
		defer c.Close()
		dev, err := netdev.Alloc(c, 1, "roce%d", netdev.Options{Interface: hosts[i]})
		must(err)
		defer dev.Close()
		must(dev.SetID(7)) // the same on all hosts of a network
		must(dev.Init())
		fmt.Println("interface, MTU", dev.MTU(), "group", dev.Group())
		go func() { ended <- dev.Run(ctx) }()
	}

	hosts[0].out <- ipPacket("192.168.7.1", "192.168.7.2", 100) // a packet from a host's kernel
	fmt.Println(len(<-hosts[1].in), "bytes of IP came")

	stop()
	must(<-ended)
	must(<-ended)
	// Output:
	// interface, MTU 4092 group 239.192.0.7
	// interface, MTU 4092 group 239.192.0.7
	// 100 bytes of IP came
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
