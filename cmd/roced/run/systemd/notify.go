package systemd

import (
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier tells the service manager what the service is doing.
type Notifier struct {
	send func(state string) error
	log  *slog.Logger
}

// NewNotifier is a Notifier to the socket that NOTIFY_SOCKET names, if there is one.
func NewNotifier(log *slog.Logger) *Notifier {
	return &Notifier{log: log, send: func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	}}
}

// Ready says that start-up or a reload is complete.
func (n *Notifier) Ready(status string) { n.notify(daemon.SdNotifyReady, "STATUS="+status) }

// Reloading says that the configuration is being read again. The manager needs the time to tell this
// reload from another (Type=notify-reload).
func (n *Notifier) Reloading() {
	n.notify(daemon.SdNotifyReloading, daemon.SdNotifyMonotonicUsec())
}

// Stopping says that the service is about to end.
func (n *Notifier) Stopping() { n.notify(daemon.SdNotifyStopping, "STATUS=stopping") }

// Status is a line for people, which systemctl status shows.
func (n *Notifier) Status(text string) { n.notify("STATUS=" + text) }

// Alive says that the service works.
func (n *Notifier) Alive() { n.notify(daemon.SdNotifyWatchdog) }

func (n *Notifier) notify(lines ...string) {
	if err := n.send(strings.Join(lines, "\n")); err != nil {
		n.log.Warn("the service manager does not hear", "error", err)
	}
}

// WatchdogInterval is how long the manager waits for Alive before it kills the service; 0 if it does
// not.
func WatchdogInterval() (time.Duration, error) { return daemon.SdWatchdogEnabled(false) }
