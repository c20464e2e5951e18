// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/run/device"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server"
	"golang.org/x/sys/unix"
)

// devices holds the devices that the service keeps open and the server offers. Only the loop changes it.
type devices struct {
	server   *server.Server
	stateDir string
	log      *slog.Logger
	changed  func()
	others   []server.Source // also offered by the server

	mu  sync.Mutex // for list, which metrics call
	all []*running
}

// running is a device with the goroutine that keeps it open.
type running struct {
	*device.Device
	stop  context.CancelFunc
	ended chan struct{}
}

func newDevices(s *server.Server, stateDir string, log *slog.Logger, changed func()) *devices {
	return &devices{server: s, stateDir: stateDir, log: log, changed: changed}
}

// add starts a device and waits for the first attempt to open it. Only missing privileges are an error; other
// failures may be temporary.
func (s *devices) add(ctx context.Context, c config.Device) error {
	cli.MakeRoom(len(s.all) + 1)
	// The device does not end with ctx but in close, because programs must be notified before their device is
	// destroyed.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{Device: device.New(c, s.stateDir, s.log, s.changed), stop: stop, ended: make(chan struct{})}
	r.OnEvent(func(event verbs.EventType) { s.server.NoteDeviceEvent(c.Name, event) })
	r.OnOpen(func() { s.server.NoteDeviceOpened(c.Name) })
	first := make(chan error, 1)
	go func() {
		defer close(r.ended)
		r.Run(ctx, func(err error) { first <- err })
	}()
	if err := <-first; errors.Is(err, unix.EPERM) {
		r.end()
		return err
	}
	if err := s.set(append(s.all[:len(s.all):len(s.all)], r)); err != nil {
		r.end()
		return err
	}
	return nil
}

// offer adds sources of another kind to the server.
func (s *devices) offer(others []server.Source) error {
	s.others = others
	return s.set(s.all)
}

// set replaces the devices that the server offers.
func (s *devices) set(all []*running) error {
	sources := slices.Clone(s.others)
	for _, r := range all {
		sources = append(sources, r.Device)
	}
	if err := s.server.SetDevices(sources...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
	return nil
}

func (r *running) end() {
	r.stop()
	<-r.ended
}

// remove removes a device with all objects of programs on it.
func (s *devices) remove(r *running) error {
	err := s.set(slices.DeleteFunc(slices.Clone(s.all), func(other *running) bool { return other == r }))
	r.end()
	return err
}

// list returns the current devices.
func (s *devices) list() []*device.Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*device.Device, len(s.all))
	for i, r := range s.all {
		list[i] = r.Device
	}
	return list
}

// linkChanged notifies the device of an interface.
func (s *devices) linkChanged(name string) {
	for _, d := range s.list() {
		if d.Interface() == name {
			d.LinkChanged()
		}
	}
}

// close ends all devices concurrently.
func (s *devices) close() {
	for _, r := range s.all {
		r.stop()
	}
	for _, r := range s.all {
		<-r.ended
	}
}
