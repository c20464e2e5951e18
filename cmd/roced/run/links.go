// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"log/slog"

	"github.com/vishvananda/netlink"
)

// followLinks returns the names of changed interfaces until ctx is done. Without netlink notifications,
// devices poll their interfaces.
func followLinks(ctx context.Context, log *slog.Logger) <-chan string {
	names, updates := make(chan string), make(chan netlink.LinkUpdate)
	err := netlink.LinkSubscribeWithOptions(updates, ctx.Done(), netlink.LinkSubscribeOptions{
		ErrorCallback: func(err error) { log.Debug("interface notifications", "error", err) },
	})
	if err != nil {
		log.Warn("no interface notifications: a device may open up to 10 s after its interface appears", "error", err)
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
