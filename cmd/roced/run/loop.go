package run

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/roced/roced/cmd/roced/run/systemd"
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
	watchdog, stop, err := startWatchdog()
	if err != nil {
		return err
	}
	defer stop()
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
		case <-watchdog:
			s.watch()
		}
	}
}

// startWatchdog ticks twice in the time in which systemd wants to hear of the service; never if it
// does not want to.
func startWatchdog() (ticks <-chan time.Time, stop func(), err error) {
	interval, err := systemd.WatchdogInterval()
	if err != nil || interval == 0 {
		return nil, func() {}, err
	}
	ticker := time.NewTicker(interval / 2)
	return ticker.C, ticker.Stop, nil
}

// watch tells the watchdog that all works, once all have answered. If something hangs, this does too,
// and systemd ends the process.
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
