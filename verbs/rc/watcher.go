// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"

	"github.com/roced/roced/verbs/cm"
)

// watcher delivers the events of ids to their connections, in its own goroutine.
type watcher struct {
	channel *cm.EventChannel
	over    chan struct{}
}

// watch returns the domain's watcher, which ends with the domain.
func (d *Domain) watch() (*watcher, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watcher != nil {
		return d.watcher, nil
	}
	channel, err := cm.CreateEventChannel(d.verbs)
	if err != nil {
		return nil, err
	}
	d.watcher = &watcher{channel, make(chan struct{})}
	go d.watcher.run()
	return d.watcher, nil
}

func (w *watcher) run() {
	defer close(w.over)
	for {
		event, err := w.channel.Get(context.Background())
		if err != nil {
			return // closed; or the device has failed, which calls detect by their CQs
		}
		if conn, is := event.ID.Context.(*Conn); is {
			conn.handshake.handle(event)
		}
	}
}

// close ends the goroutine. It requires that all ids are closed.
func (w *watcher) close() error {
	err := w.channel.Close()
	if err == nil {
		<-w.over
	}
	return err
}
