// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier reports the state of the service to the service manager.
type Notifier struct {
	send func(state string) error
	log  *slog.Logger
}

// NewNotifier returns a Notifier for the socket of NOTIFY_SOCKET. Without one, notifications are discarded.
func NewNotifier(log *slog.Logger) *Notifier {
	return &Notifier{log: log, send: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
}

// Ready reports that start-up or a reload is complete.
func (n *Notifier) Ready(status string) { n.notify(daemon.SdNotifyReady, "STATUS="+status) }

// Reloading reports that the configuration is being reloaded. Its timestamp distinguishes reloads
// (Type=notify-reload).
func (n *Notifier) Reloading() {
	n.notify(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec())
}

// Stopping reports that the service is stopping.
func (n *Notifier) Stopping() { n.notify(daemon.SdNotifyStopping, "STATUS=stopping") }

// Status reports a status line, which systemctl status shows.
func (n *Notifier) Status(text string) { n.notify("STATUS=" + text) }

// Alive resets the watchdog.
func (n *Notifier) Alive() { n.notify(daemon.SdNotifyWatchdog) }

func (n *Notifier) notify(lines ...string) {
	if err := n.send(strings.Join(lines, "\n")); err != nil {
		n.log.Warn("cannot notify the service manager", "error", err)
	}
}

// WatchdogInterval returns the time without Alive after which the manager kills the service; 0 without a
// watchdog.
func WatchdogInterval() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) }
