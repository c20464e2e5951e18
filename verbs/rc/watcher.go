// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"

	"github.com/roced/roced/verbs/cm"
)

// watcher delivers the events of ids to their connections, in its own goroutine.
type watcher struct {
	channel *cm.EventChannel
	over    chan struct{} // closed when the goroutine ends
}

// watch returns the domain's watcher, and starts it if needed. It ends with the domain.
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
			return // the channel is closed, or the device has failed, which other calls detect with their CQs
		}
		if conn, is := event.ID.Context.(*Conn); is {
			conn.handshake.handle(event)
		}
	}
}

// close ends the goroutine and waits for it. All ids must be closed before.
func (w *watcher) close() error {
	err := w.channel.Close()
	if err == nil {
		<-w.over
	}
	return err
}
