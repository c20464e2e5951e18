// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/proto"
)

// TestMonitor: monitor prints events of all devices or of one, as lines and as JSON, until it is stopped.
func TestMonitor(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	lines := cmdtest.Start(t, "monitor", "--socket", socket)
	objects := cmdtest.Start(t, "monitor", "--socket", socket, "-j", "-d", "right")
	come := func(device string) {
		c, err := client.Dial(socket, device)
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() { // until both have started, within the service's limit of connections per second
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				come("left")
				come("right")
			}
		}
	}()
	lines.Await(t, "  left  client ")
	lines.Await(t, " closed the device")
	var e event
	if err := json.Unmarshal([]byte(objects.Await(t, "client_closed")), &e); err != nil || e.Device != "right" || e.Client == 0 || e.Time.IsZero() {
		t.Errorf("%+v, %v", e, err)
	}
	close(stop)
	<-ended
	lines.Stop()
	objects.Stop()
	for _, b := range []*cmdtest.Background{lines, objects} {
		if code, _ := b.Wait(); code != 0 {
			t.Errorf("exit code %d: %s", code, b.Stderr())
		}
	}
}

// TestLines: each kind of event has its line.
func TestLines(t *testing.T) {
	for _, row := range []struct {
		event proto.Event
		want  string
	}{
		{proto.Event{Kind: proto.ClientOpened, Client: 3, PID: 7, UID: 4294967294, Command: "x", Device: "eth0"}, "  eth0  client 3 (x, pid 7, 4294967294) opened the device"},
		{proto.Event{Kind: proto.DeviceEvent, Type: 10, Device: "eth0"}, "  eth0  " + newEvent(&proto.Event{Kind: proto.DeviceEvent, Type: 10}).Name},
		{proto.Event{Kind: proto.DeviceOpened, Device: "eth0"}, "  eth0  opened: programs can use it"},
		{proto.Event{Kind: proto.ObjectEvent, Object: proto.SRQs, Number: 4, Client: 3, PID: 7, UID: 4294967294, Command: "x", Type: 15}, "SRQ 4 of client 3 (x, pid 7, 4294967294): "},
		{proto.Event{Kind: proto.QPFailed, Object: proto.QPs, Number: 4, Client: 3, PID: 7, UID: 4294967294, Command: "x", State: 5}, "QP 0x000004 of client 3 (x, pid 7, 4294967294): state SQE"},
	} {
		cmdtest.CheckSays(t, newEvent(&row.event).String(), row.want)
	}
	cmdtest.CheckSays(t, (&event{Lost: 5}).String(), "5 events lost")
}

func TestMonitorErrors(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	cmdtest.CheckFailure(t, []string{"monitor", "--socket", "/no/such.sock"}, cli.ExitFailed, "check that it is running")
	cmdtest.CheckFailure(t, []string{"monitor", "--socket", socket, "-d", "eth9"}, cli.ExitFailed, `no device "eth9"`)
}
