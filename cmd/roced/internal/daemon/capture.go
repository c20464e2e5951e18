// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"os"

	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// Capture starts a pcapng capture, which ends when the connection is closed or the device ends. The caller
// closes the stream.
func (c *Connection) Capture(r proto.CaptureRequest) (*os.File, error) {
	_, ends, err := callRights(c, proto.StartCapture, r)
	if err != nil {
		return nil, err
	}
	if len(ends) != 1 {
		proto.CloseAll(ends)
		return nil, fmt.Errorf("%w: a capture with %d descriptors", proto.ErrMalformed, len(ends))
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		proto.CloseAll(ends)
		return nil, err
	}
	return os.NewFile(uintptr(ends[0]), "capture"), nil
}
