// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"errors"
	"sync"
	"time"
)

// health is the state of the service: good if it responds and has a device.
type health struct {
	mu      sync.Mutex
	good    bool
	changed chan struct{} // closed at the next change
}

func newHealth() health { return health{changed: make(chan struct{})} }

// state returns the current state, and a channel that is closed when it changes.
func (h *health) state() (good bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.good, h.changed
}

// set sets the state, and reports whether it has changed.
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

// interval is the time between two checks of the service and of the kubelet's socket.
const interval = time.Second

var errNoDevice = errors.New("the service has no device")

// follow monitors the service until ctx is done.
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
			p.log.Info("service available", "devices", devices)
		case changed:
			p.log.Warn("service unavailable; containers get no sockets", "error", err)
		}
		if !pause(ctx) {
			return
		}
	}
}

// pause waits for the interval, and returns false if ctx is done.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(interval):
		return true
	case <-ctx.Done():
		return false
	}
}
