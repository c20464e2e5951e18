// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"errors"
	"sync"
	"time"
)

// health is whether the service answers and has a device.
type health struct {
	mu      sync.Mutex
	good    bool
	changed chan struct{} // closed at the next change
}

func newHealth() health { return health{changed: make(chan struct{})} }

// look returns the current state, and a channel that is closed when it changes.
func (h *health) look() (good bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.good, h.changed
}

// set reports whether that is a change.
func (h *health) set(good bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.good == good {
		return false
	}
	h.good = good
	close(h.changed)
	h.changed = make(chan struct{})
	return true
}

// interval is how often the service, and the kubelet's socket, are looked at.
const interval = time.Second

var errNoDevice = errors.New("the service has no device")

// follow looks after the service until ctx is done.
func (p *Plugin) follow(ctx context.Context) {
	for {
		devices, err := p.service.Devices(ctx)
		if err == nil && len(devices) == 0 {
			err = errNoDevice
		}
		switch changed := p.health.set(err == nil); {
		case ctx.Err() != nil:
			return
		case changed && err == nil:
			p.log.Info("the service answers", "devices", devices)
		case changed:
			p.log.Warn("no container gets a socket until the service answers", "error", err)
		}
		if !pause(ctx) {
			return
		}
	}
}

// pause waits for the interval, and reports whether to go on.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(interval):
		return true
	case <-ctx.Done():
		return false
	}
}
