// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/cm"
)

// connectedPort is where a connected client's peer listens.
const connectedPort = 7174

func endpoint(ctx context.Context, device *verbs.Context, info *cm.AddrInfo) (*cm.Endpoint, error) {
	pd, err := device.AllocPD()
	if err != nil {
		return nil, err
	}
	cq, err := device.CreateCQ(16)
	if err != nil {
		return nil, err
	}
	info.PortSpace = cm.PortSpaceTCP
	return cm.CreateEP(ctx, info, pd, &verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4}})
}

// connectedClient connects to the peer, and waits.
func connectedClient(path string) error {
	c, err := client.Dial(path, "")
	if err != nil {
		return err
	}
	device, err := verbs.Open(c)
	if err != nil {
		return err
	}
	ctx := context.Background()
	e, err := endpoint(ctx, device, &cm.AddrInfo{Dest: netip.AddrPortFrom(addressesB[0], connectedPort)})
	if err != nil {
		return err
	}
	if _, err := e.Connect(ctx, &cm.ConnParam{RetryCount: 7, RNRRetryCount: 7}); err != nil {
		return err
	}
	fmt.Println("ready")
	return e.Disconnected(ctx)
}

// The peer of a program that is killed is told that their connection has ended.
func TestConnectedClientKilled(t *testing.T) {
	r := newRig(t, anyone)
	ctx := guard(t)
	service, err := endpoint(ctx, newProgram(t, r.b.dial(t)).ctx, &cm.AddrInfo{Flags: cm.AddrInfoPassive, Source: netip.AddrPortFrom(addressesB[0], connectedPort)})
	check(t, err)
	check(t, service.Listen(0))
	accepted := make(chan *cm.Endpoint)
	go func() {
		defer close(accepted)
		asked, _, err := service.GetRequest(ctx)
		if err == nil && asked.Accept(ctx, &cm.ConnParam{RNRRetryCount: 7}) == nil {
			accepted <- asked
		}
	}()
	child := startChild(t, "connected client", r.a.path)
	e, ok := <-accepted
	if !ok {
		t.Fatal("not connected")
	}
	check(t, child.Process.Kill())
	check(t, e.Disconnected(ctx))
	check(t, e.Disconnect(ctx))
	check(t, e.Close())
	check(t, service.Close())
	_ = child.Wait()
	r.a.alone(t, 0)
}
