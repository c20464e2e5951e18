// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"os"
	"sync"
)

// View is the service as one client sees it: root and the service's own user see all clients, others those of their uid.
// Its methods carry out the client's commands, one at a time.
type View struct {
	service *Service
	client  *Client
	monitor *monitor // of a client that waits for events; else nil
	stream  *os.File // of a capture; else nil

	over    chan struct{} // closed by Close
	capture sync.WaitGroup
}

// View returns the view of a client, also of one that has not been added.
func (s *Service) View(c *Client) *View {
	return &View{service: s, client: c, over: make(chan struct{})}
}

// Close ends the monitor and the capture that commands have started.
func (v *View) Close() {
	close(v.over)
	if v.stream != nil {
		_ = v.stream.Close() // the goroutine that writes to it fails
	}
	v.capture.Wait()
	if v.monitor != nil {
		v.service.monitors.leave(v.monitor)
	}
}
