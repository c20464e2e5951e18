package client

import (
	"context"
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// CreateCompChannel implements verbs.Provider. The card writes to the channel itself.
func (c *Client) CreateCompChannel() (grant verbs.CreateCompChannelGrant, err error) {
	if isClosed(c.closing) {
		return grant, verbs.ErrClosed
	}
	grant, ends, err := exchangeRights(context.Background(), c, proto.CreateCompChannel, &proto.None{}, false)
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
		return verbs.CreateCompChannelGrant{}, err
	}
	grant.Events = os.NewFile(uintptr(ends[0]), "completion channel")
	return grant, nil
}

// DestroyCompChannel implements verbs.Provider.
func (c *Client) DestroyCompChannel(r verbs.DestroyCompChannelRequest) error {
	return free(c, proto.DestroyCompChannel, r)
}
