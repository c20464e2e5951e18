// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// AttachMcast makes the device receive messages to a group, in addition to the network's own (attach_mcast). The MLID
// is 0 on RoCE. If setQKey is true, qkey is the group's Q_Key and must be that of the network, since the queue pair has
// one Q_Key.
func (d *Device) AttachMcast(gid verbs.GID, mlid verbs.MLID, setQKey bool, qkey verbs.QKey) error {
	if err := d.checkGroup(mlid); err != nil {
		return fmt.Errorf("attach to %v: %w", gid, err)
	}
	if setQKey && qkey != d.QKey() {
		return fmt.Errorf("attach to %v: %w: Q_Key %v; the network's is %v", gid, verbs.ErrInvalid, qkey, d.QKey())
	}
	return d.endpoint.Join(gid.Addr())
}

// DetachMcast undoes AttachMcast; verbs.ErrNoGID for a group that the device is not attached to (detach_mcast).
func (d *Device) DetachMcast(gid verbs.GID, mlid verbs.MLID) error {
	if err := d.checkGroup(mlid); err != nil {
		return fmt.Errorf("detach from %v: %w", gid, err)
	}
	return d.endpoint.Leave(gid.Addr())
}

func (d *Device) checkGroup(mlid verbs.MLID) error {
	switch {
	case d.endpoint == nil:
		return fmt.Errorf("%w: call Init first", verbs.ErrState)
	case mlid != 0:
		return fmt.Errorf("%w: MLID %v; it must be 0 on RoCE", verbs.ErrInvalid, mlid)
	}
	return nil
}
