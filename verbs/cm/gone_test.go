// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"testing"

	"github.com/roced/roced/verbs/cm"
)

// TestEndpointOfAGoneDevice: it can be closed, with its queue pair, and leaves no descriptor.
func TestEndpointOfAGoneDevice(t *testing.T) {
	a := device(t, newNetwork(t), "a", "10.0.0.1")
	pd, init := endpointAttr(t, a)
	e, err := cm.CreateEP(guard(t), &cm.AddrInfo{PortSpace: cm.PortSpaceTCP, Dest: addr("10.0.0.1:7174")}, pd, init)
	check(t, err)
	check(t, a.Close())
	check(t, e.Close())
}
