// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// createCompChannel creates a completion channel. The card writes to the channel directly.
func (c *Client) createCompChannel() (grant provider.CreateCompChannelGrant, err error) {
	grant, events, err := openChannel(c, proto.CreateCompChannel, "completion channel")
	grant.Events = events
	return grant, err
}

// createEventChannel creates an event channel. The card writes to the channel directly.
func (c *Client) createEventChannel() (grant provider.CreateEventChannelGrant, err error) {
	grant, events, err := openChannel(c, proto.CreateEventChannel, "event channel")
	grant.Events = events
	return grant, err
}

// openChannel executes a command whose grant contains the program's end of a channel.
func openChannel[G any](c *Client, command proto.Command[proto.None, G], name string) (grant G, end *os.File, err error) {
	if isClosed(c.closing) {
		return grant, nil, verbs.ErrClosed
	}
	ends, err := c.exchangeRights(context.Background(), command.Untyped, &proto.None{}, &grant, false)
	if err == nil && len(ends) == 1 {
		err = unix.SetNonblock(ends[0], true)
	} else if err == nil {
		err = fmt.Errorf("%w: a channel with %d descriptors", proto.ErrMalformed, len(ends))
	}
	if err != nil {
		proto.CloseAll(ends)
		if verbs.KindOf(err) == nil {
			err = fmt.Errorf("%w: %w", verbs.ErrHost, err)
		}
		return *new(G), nil, err
	}
	return grant, os.NewFile(uintptr(ends[0]), name), nil
}
