// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hangups returns a channel that receives SIGHUP.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// loop runs the service until ctx is done or a socket fails.
func (s *service) loop(ctx context.Context, hangups <-chan os.Signal) error {
	links := followLinks(ctx, s.log)
	watchdog, err := newWatchdog(s.notify.Alive, s.log)
	if err != nil {
		return err
	}
	go watchdog.run(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.serving:
			s.serves--
			return fmt.Errorf("serving a socket failed: %w", err)
		case <-hangups:
			s.reload(ctx)
		case <-s.changed:
			s.notifyStatus()
		case name := <-links:
			s.devices.linkChanged(name)
		case probe := <-watchdog.probes:
			s.watch()
			close(probe)
		}
	}
}

// watch notifies the watchdog when all checks have responded. If a check hangs, so does watch, and systemd
// kills the process.
func (s *service) watch() {
	if err := s.check(); err != nil {
		s.log.Error("health check failed", "error", err)
		return
	}
	s.notify.Alive()
	s.notifyStatus()
}

// notifyStatus reports the state to systemd if it has changed.
func (s *service) notifyStatus() {
	if status := s.describe(); status != s.status {
		s.status = status
		s.notify.Status(status)
	}
}
