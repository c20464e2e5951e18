package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hangups are SIGHUPs from now on.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// loop does what is to be done while the service runs. It ends with ctx, or if nobody can connect any
// more.
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
			return fmt.Errorf("a socket is not served any more: %w", err)
		case <-hangups:
			s.reload(ctx)
		case <-s.changed:
			s.tellStatus()
		case name := <-links:
			s.devices.linkChanged(name)
		case question := <-watchdog.questions:
			s.watch()
			close(question)
		}
	}
}

// watch notifies systemd's watchdog when everything has responded. If something hangs, this does too, and systemd ends the
// process.
func (s *service) watch() {
	if err := s.check(); err != nil {
		s.log.Error("not well", "error", err)
		return
	}
	s.notify.Alive()
	s.tellStatus()
}

// tellStatus tells systemd of the state, if it is another.
func (s *service) tellStatus() {
	if status := s.describe(); status != s.status {
		s.status = status
		s.notify.Status(status)
	}
}
