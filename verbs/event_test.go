// SPDX-License-Identifier: Apache-2.0

package verbs

import "testing"

// TestEventTypes checks that the numbers are those of libibverbs, and that each event has its own text.
func TestEventTypes(t *testing.T) {
	rows := []struct {
		event EventType
		value int // enum ibv_event_type
		text  string
	}{
		{EventCQErr, 0, "CQ error"},
		{EventQPFatal, 1, "local work queue catastrophic error"},
		{EventDeviceFatal, 8, "local catastrophic error"},
		{EventPortActive, 9, "port active"},
		{EventPortErr, 10, "port error"},
		{EventGIDChange, 18, "GID table change"},
		{20, 20, "event(20)"},
	}
	for _, row := range rows {
		if int(row.event) != row.value || row.event.String() != row.text {
			t.Errorf("got %d %q, want %d %q", row.event, row.event, row.value, row.text)
		}
	}
}
