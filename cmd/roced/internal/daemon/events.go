// SPDX-License-Identifier: Apache-2.0

package daemon

import "github.com/roced/roced/verbs/proto"

// NextEvents waits for events.
func (c *Connection) NextEvents() (proto.Events, error) {
	return call(c, proto.NextEvents, proto.None{})
}
