// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// TestDestroyedChannels: commands on a destroyed channel return EBADF first, as in libibverbs.
func TestDestroyedChannels(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.opened(t)
	completions, ends := ask(c, proto.CreateCompChannel, &proto.None{})
	proto.CloseAll(ends)
	events, ends := ask(c, proto.CreateEventChannel, &proto.None{})
	proto.CloseAll(ends)
	ask(c, proto.DestroyCompChannel, &provider.DestroyCompChannelRequest{Channel: completions.Channel})
	ask(c, proto.DestroyEventChannel, &provider.DestroyEventChannelRequest{Channel: events.Channel})
	for name, err := range map[string]error{
		"a CQ's":            refused(c, proto.CreateCQ, &provider.CreateCQRequest{Entries: 1, Channel: completions.Channel}),
		"destroyed again":   refused(c, proto.DestroyCompChannel, &provider.DestroyCompChannelRequest{Channel: completions.Channel}),
		"an id's":           refused(c, proto.CreateID, &provider.CreateIDRequest{Channel: events.Channel, PortSpace: wire.PortSpaceUDP}),
		"asked for events":  refused(c, proto.GetCMEvent, &provider.GetCMEventRequest{Channel: events.Channel}),
		"destroyed again, ": refused(c, proto.DestroyEventChannel, &provider.DestroyEventChannelRequest{Channel: events.Channel}),
	} {
		var first unix.Errno
		if !errors.As(err, &first) || first != unix.EBADF || !errors.Is(err, verbs.ErrObjectClosed) {
			t.Errorf("%s: %v, first %v", name, err, first)
		}
	}
}

// TestVersions: the highest version that both sides have is used. Without a common version, the error contains both ranges.
func TestVersions(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.raw(t)
	hello := func(oldest, newest uint16) *proto.HelloRequest {
		return &proto.HelloRequest{Magic: proto.Magic, Oldest: oldest, Newest: newest}
	}
	for _, newest := range []uint16{proto.Version, proto.Version + 1, 65535} {
		if g, _ := ask(c, proto.Hello, hello(1, newest)); g.Version != proto.Version {
			t.Errorf("to %d: version %d", newest, g.Version)
		}
	}
	service := fmt.Sprintf("the service's %d to %d", proto.OldestVersion, proto.Version)
	for _, h := range []*proto.HelloRequest{hello(proto.Version+1, proto.Version+4), hello(0, proto.OldestVersion-1), hello(5, 1)} {
		if err := refused(c, proto.Hello, h); !errors.Is(err, verbs.ErrUnsupported) || !strings.Contains(err.Error(), service) {
			t.Error(err)
		}
	}
}
