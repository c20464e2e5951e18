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

// xrcDomains are a client's, with the queues of them.
type xrcDomains struct{ *Client }

// OpenXRCD implements provider.Provider. The service finds the inode of the file itself.
func (c xrcDomains) OpenXRCD(r provider.OpenXRCDRequest) (provider.OpenXRCDGrant, error) {
	request := proto.OpenXRCDRequest{HasFile: r.File != nil, Create: r.Create, Exclusive: r.Exclusive}
	if r.File == nil {
		return ask(c.Client, proto.OpenXRCD, request)
	}
	c.passing.Lock() // one file at a time
	defer c.passing.Unlock()
	if err := c.passFile(r.File); err != nil {
		return provider.OpenXRCDGrant{}, err
	}
	return ask(c.Client, proto.OpenXRCD, request)
}

// passFile passes a file to the service.
func (c xrcDomains) passFile(file syscall.Conn) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: the file of an XRC domain: %w", verbs.ErrInvalid, err)
	}
	if isClosed(c.closing) {
		return verbs.ErrClosed
	}
	_, ends, err := exchangeRights(context.Background(), c.Client, proto.PassFile, &proto.None{}, false)
	if err != nil {
		return err
	}
	defer proto.CloseAll(ends)
	if len(ends) != 1 {
		return fmt.Errorf("%w: %w: no socket to pass a file by", verbs.ErrHost, proto.ErrMalformed)
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

// CloseXRCD implements provider.Provider.
func (c xrcDomains) CloseXRCD(r provider.CloseXRCDRequest) error {
	return free(c.Client, proto.CloseXRCD, r)
}

// CreateXRCSRQ implements provider.Provider.
func (c xrcDomains) CreateXRCSRQ(r provider.CreateXRCSRQRequest) (provider.CreateXRCSRQGrant, error) {
	return ask(c.Client, proto.CreateXRCSRQ, r)
}

// CreateXRCTarget implements provider.Provider.
func (c xrcDomains) CreateXRCTarget(r provider.CreateXRCTargetRequest) (provider.OpenQPGrant, error) {
	return ask(c.Client, proto.CreateXRCTarget, r)
}

// OpenQP implements provider.Provider.
func (c xrcDomains) OpenQP(r provider.OpenQPRequest) (provider.OpenQPGrant, error) {
	return ask(c.Client, proto.OpenQP, r)
}
