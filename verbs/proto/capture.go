package proto

import "github.com/roced/roced/verbs"

// StartCapture asks for copies of a device's packets. Its reply carries a stream socket, from which
// pcapng comes until the connection or the device ends. Who does not read loses packets, which the
// records count. Only for those who see all: others' messages are in it.
var StartCapture = command(8, "start_capture", visitCapture, none)

// CaptureRequest says which packets.
type CaptureRequest struct {
	Device string
	QPN    verbs.QPN // that sends or receives; 0: any
	Snap   uint32    // bytes of each frame; 0: all
	Group  verbs.GID // to which they go; zero: any
}

func visitCapture(c *coder, r *CaptureRequest) {
	c.text("device", nameLen, &r.Device)
	u32(c, "qpn", &r.QPN)
	u32(c, "snap", &r.Snap)
	c.raw("group", r.Group[:])
}
