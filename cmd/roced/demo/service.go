// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/ud"
)

// service is the service of roced run on an in-memory network, with two sessions that share its device. Each session
// represents a program, though both are in this process.
type service struct {
	folder   string
	device   *hca.Card
	server   *server.Server
	serving  chan error
	programs [2]*card.Endpoint
}

// serviceAddress is the address of the service's device.
const serviceAddress = "10.88.0.1"

// showService exchanges messages between the two programs.
func (d *demo) showService(ctx context.Context) (err error) {
	if err := memory.CheckKernel(); err != nil {
		return err
	}
	s := &service{}
	if err := build(ctx, s, s.open, func() error { return s.connect(ctx, d) }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	trips := d.requestsFor()
	start := time.Now()
	if err := s.exchange(ctx, trips); err != nil {
		return fmt.Errorf("over the service: %w", err)
	}
	fmt.Fprintf(d.out, "\nA service, and two programs that share its device %s, %s, through its socket:\n\n", s.programs[0].Device.Attr.Name, serviceAddress)
	w := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  PROGRAM\tQUEUE PAIR\tSENT\tGOT\tCHECKED")
	for i, p := range s.programs {
		fmt.Fprintf(w, "  %s\t%v\t%s\t%s\tok\n", []string{"one", "other"}[i], p.QPN(), cli.Grouped(uint64(trips)), cli.Grouped(uint64(trips)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "\n%s round trips in %v. Neither needs privileges or can access the other's memory.\n", cli.Grouped(uint64(trips)), time.Since(start).Round(time.Millisecond))
	return err
}

// open starts the service.
func (s *service) open() (err error) {
	if s.folder, err = os.MkdirTemp("", labPrefix); err != nil {
		return err
	}
	host, err := memnet.New(0).AddHost("shared", netip.MustParseAddr(serviceAddress))
	if err != nil {
		return err
	}
	if s.device, err = hca.New(host, hca.WithoutInline()); err != nil {
		return err
	}
	if s.server, err = server.New(server.Config{Devices: []server.Source{s.device}, PrivilegedGroup: -1}); err != nil {
		return err
	}
	listener, err := net.Listen("unixpacket", s.socket())
	if err != nil {
		return err
	}
	s.serving = make(chan error, 1)
	go func() { s.serving <- s.server.Serve(listener) }()
	return nil
}

func (s *service) socket() string { return filepath.Join(s.folder, "roced.sock") }

// connect opens the device in two programs.
func (s *service) connect(ctx context.Context, d *demo) error {
	for i := range s.programs {
		device, err := card.Connect(ctx, s.socket(), "shared", d.log)
		if err != nil {
			return err
		}
		o := endpointOptions(card.TestQKey)
		o.Spin = false
		if s.programs[i], err = card.OpenEndpoint(device, o); err != nil {
			return errors.Join(err, device.Close())
		}
	}
	return nil
}

// exchange sends trips messages each way.
func (s *service) exchange(ctx context.Context, trips int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(trips)*card.StallTimeout, errors.New("no message received"))
	defer cancel()
	data := make([]byte, 64)
	for trip := range trips {
		for from, p := range s.programs {
			to := s.programs[1-from]
			newPattern(from, uint32(trip)).fill(data)
			at := ud.Addr{GID: verbs.GIDFromAddr(netip.MustParseAddr(serviceAddress)), QPN: to.QPN(), QKey: card.TestQKey}
			if err := p.SendAll(ctx, []ud.Message{{To: at, Data: data}}); err != nil {
				return err
			}
			if err := s.receive(ctx, to, newPattern(from, uint32(trip)), p.QPN()); err != nil {
				return fmt.Errorf("message %d: %w", trip, err)
			}
		}
	}
	return nil
}

func (s *service) receive(ctx context.Context, p *card.Endpoint, want pattern, from verbs.QPN) error {
	var messages [1]ud.Message
	n, err := p.Receive(ctx, true, messages[:])
	if err != nil {
		return err
	}
	defer p.Release(messages[:n])
	if got := messages[0].From.QPN; got != from {
		return fmt.Errorf("got source QP %v, want %v", got, from)
	}
	return want.check(messages[0].Data)
}

// Close ends the programs and the service.
func (s *service) Close() (err error) {
	for _, p := range s.programs {
		if p != nil {
			err = errors.Join(err, p.Close(), p.Device.Close())
		}
	}
	if s.serving != nil {
		err = errors.Join(err, s.server.Close(), <-s.serving)
	}
	if s.device != nil {
		err = errors.Join(err, s.device.Close())
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
