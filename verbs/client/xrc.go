// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"fmt"
	"syscall"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// openXRCD opens a domain. The service determines the inode of the file itself.
func (c *Client) openXRCD(r provider.OpenXRCDRequest) (grant provider.OpenXRCDGrant, err error) {
	request := proto.OpenXRCDRequest{HasFile: r.File != nil, Create: r.Create, Exclusive: r.Exclusive}
	if r.File != nil {
		c.passing.Lock() // one file at a time
		defer c.passing.Unlock()
		if err := c.passFile(r.File); err != nil {
			return grant, err
		}
	}
	err = c.pass(context.Background(), proto.OpenXRCD.Code, &request, &grant)
	return grant, err
}

// passFile passes a file to the service.
func (c *Client) passFile(file syscall.Conn) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	}
	if isClosed(c.closing) {
		return verbs.ErrClosed
	}
	ends, err := c.exchangeRights(context.Background(), proto.PassFile.Untyped, &proto.None{}, &proto.None{}, false)
	if err != nil {
		return err
	}
	defer proto.CloseAll(ends)
	if len(ends) != 1 {
		return fmt.Errorf("%w: %w: the reply has no socket to pass a file by", verbs.ErrHost, proto.ErrMalformed)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.Sendmsg(ends[0], []byte{0}, unix.UnixRights(int(fd)), nil, unix.MSG_NOSIGNAL)
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	case failed != nil:
		return fmt.Errorf("%w: pass a file to the service: %w", verbs.ErrHost, failed)
	}
	return nil
}
