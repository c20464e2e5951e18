// SPDX-License-Identifier: Apache-2.0

package proto

import "github.com/roced/roced/verbs"

// StartCapture requests copies of a device's packets. Its reply carries a stream socket, which transfers pcapng until
// the connection or the device is closed. A slow reader loses packets, which the records count. It requires access to
// all clients, since it includes the packets of other users.
var StartCapture = command(8, "start_capture", visitCapture, none)

// CaptureRequest selects the packets.
type CaptureRequest struct {
	Device string
	QPN    verbs.QPN // sender or receiver; 0: any
	Snap   uint32    // bytes of each frame; 0: all
	Group  verbs.GID // destination; zero: any
}

func visitCapture(c *coder, r *CaptureRequest) {
	c.text("device", nameLen, &r.Device)
	u32(c, "qpn", &r.QPN)
	u32(c, "snap", &r.Snap)
	c.raw("group", r.Group[:])
}
