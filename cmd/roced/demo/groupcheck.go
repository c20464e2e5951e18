// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
)

// check returns an error unless the group's traffic was as expected.
func (r *groupRun) check() error {
	if r.lab.network != nil {
		if r.unexpected > 0 {
			return fmt.Errorf("group %v: the host outside the group received %d messages", r.group, r.unexpected)
		}
		return nil
	}
	sender, receiver, outsider := *r.lab.sender.watch.of(r.group), *r.lab.receiver.watch.of(r.group), *r.lab.outsider.watch.of(r.group)
	switch {
	case sender.reports+sender.leaves > 0:
		return fmt.Errorf("group %v: the send-only member sent %s", r.group, sender.membership())
	case receiver.reports == 0 || receiver.leaves == 0:
		return fmt.Errorf("group %v: the full member sent %s", r.group, receiver.membership())
	case outsider != traffic{} || r.unexpected > 0:
		return fmt.Errorf("group %v: the host outside the group received %d messages on its wire and %d in its queue pair, and sent %s",
			r.group, outsider.messages, r.unexpected, outsider.membership())
	case sender.messages != r.messages || receiver.messages != r.messages:
		return fmt.Errorf("group %v: got %d messages on the sender's wire and %d on the receiver's, want %d", r.group, sender.messages, receiver.messages, r.messages)
	}
	return nil
}
