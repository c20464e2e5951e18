// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/ud"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	network := memnet.New(1)
	defer network.Close()
	host, err := network.AddHost("host", netip.MustParseAddr("10.0.0.1"))
	if err != nil {
		return err
	}
	if err := network.Impair(memnet.Impairment{Loss: 0.1}); err != nil {
		return err
	}
	card, err := hca.New(host, hca.WithoutInline())
	if err != nil {
		return err
	}
	c, err := verbs.Open(card)
	if err != nil {
		return err
	}
	if _, err := client.Dial(client.DefaultPath, ""); err == nil {
		fmt.Println("the service runs")
	}
	if _, err := cm.CreateEventChannel(c); err != nil {
		return err
	}
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		return err
	}
	return e.Send(context.Background(), e.LocalAddr(), []byte("hello"))
}
