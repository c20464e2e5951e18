// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "time"

// Notifier is the notification point: it limits the frequency of the CNPs that a queue pair sends for marked packets.
type Notifier struct{ last time.Time }

// Marked records a marked packet, and reports whether to send a CNP now.
func (n *Notifier) Marked(p *Parameters, now time.Time) bool {
	if since := now.Sub(n.last); since >= 0 && since < p.NotifyInterval {
		return false
	}
	n.last = now
	return true
}
