// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// TestEventChannelThatIsHeld: a program that reads from its event channel into memory that is not there holds the kernel's
// lock of that socket. The card, which takes a byte back from there, and the connection management of others do not wait.
func TestEventChannelThatIsHeld(t *testing.T) {
	r := newRig(t, anyone)
	r.a.open(t)
	bad := r.a.openedAs(t, 4711)
	end := bad.eventChannelEnd()
	check(t, unix.SetNonblock(end, false))
	id := func(port uint16) provider.Handle {
		g, _ := ask(bad, proto.CreateID, &provider.CreateIDRequest{Channel: bad.channel, PortSpace: wire.PortSpaceTCP})
		ask(bad, proto.BindID, &provider.BindIDRequest{ID: g.ID, Address: netip.AddrPortFrom(addressesA[0], port)})
		return g.ID
	}
	ask(bad, proto.ListenID, &provider.ListenIDRequest{ID: id(7471), Backlog: 4})
	resolves := id(0)
	ask(bad, proto.ResolveIDAddr, &provider.ResolveIDAddrRequest{ID: resolves, Dest: netip.AddrPortFrom(addressesA[0], 1), Timeout: time.Second})
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(end), Events: unix.POLLIN}}, -1)
	check(t, err)
	page, awaitReader, present := absentPage(t)
	read := make(chan error, 1)
	go func() {
		_, _, err := unix.Recvfrom(end, page, unix.MSG_PEEK)
		read <- err
	}()
	awaitReader()
	defer func() {
		present()
		check(t, <-read)
	}()
	packet, err := proto.DestroyID.EncodeRequest(1, &provider.DestroyIDRequest{ID: resolves})
	check(t, err)
	check(t, bad.Send(packet))
	eventually(t, "the id is destroyed", func() bool { return goroutines("", "ids.(*Channel).settle", "ids.takeBack") > 0 })

	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	good := newProgram(t, r.a.dial(t))
	asks, err := endpoint(ctx, good.ctx, &cm.AddrInfo{Dest: netip.AddrPortFrom(addressesA[0], 7471)})
	check(t, err)
	asked, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = asks.Connect(asked, &cm.ConnParam{}) // its request is an event for the bad program
	}()
	service, err := endpoint(ctx, newProgram(t, r.b.dial(t)).ctx, &cm.AddrInfo{Flags: cm.AddrInfoPassive, Source: netip.AddrPortFrom(addressesB[0], connectedPort)})
	check(t, err)
	check(t, service.Listen(0))
	go func() {
		if one, _, err := service.GetRequest(ctx); err == nil {
			_ = one.Accept(ctx, &cm.ConnParam{RNRRetryCount: 7})
		}
	}()
	connects, err := endpoint(ctx, good.ctx, &cm.AddrInfo{Dest: netip.AddrPortFrom(addressesB[0], connectedPort)})
	if err == nil {
		_, err = connects.Connect(ctx, &cm.ConnParam{RetryCount: 7, RNRRetryCount: 7})
	}
	if err != nil {
		t.Errorf("another program's connection: %v", err)
	}
	stop()
	<-over
}
