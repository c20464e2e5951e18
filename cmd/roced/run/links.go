package run

import (
	"context"
	"log/slog"

	"github.com/vishvananda/netlink"
)

// followLinks gives the names of interfaces that have changed, until ctx is done. Where that is not to
// be had, devices look by themselves after a while.
func followLinks(ctx context.Context, log *slog.Logger) <-chan string {
	names, updates := make(chan string), make(chan netlink.LinkUpdate)
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { log.Debug("news of interfaces", "error", err) },
	})
	if err != nil {
		log.Warn("no news of interfaces: a device whose interface comes is opened up to 10 s later", "error", err)
		return nil
	}
	go func() {
		for u := range updates {
			select {
			case names <- u.Attrs().Name:
			case <-ctx.Done():
			}
		}
	}()
	return names
}
