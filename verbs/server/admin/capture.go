// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bufio"
	"fmt"
	"os"

	"github.com/roced/roced/internal/pcapng"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// capturer is a device whose packets can be captured.
type capturer interface {
	Capture(hca.CaptureFilter) (*hca.Capture, error)
}

// StartCapture returns the end of a stream, which the caller closes after use. A goroutine writes packets to the stream until
// the view or the device is closed, or the client closes its end. It writes as fast as the client reads; meanwhile the
// capture keeps packets, or loses and counts them.
func (v *View) StartCapture(r proto.CaptureRequest) (end int, err error) {
	capture, err := v.openCapture(r)
	if err != nil {
		return -1, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		capture.Close()
		return -1, fmt.Errorf("%w: a stream for packets: %w", verbs.ErrHost, err)
	}
	_ = unix.Shutdown(ends[0], unix.SHUT_RD) // the client sends no data
	v.stream = os.NewFile(uintptr(ends[0]), "capture")
	v.capture.Go(func() {
		defer capture.Close()
		defer v.stream.Close()
		_ = v.writeCapture(capture, r) // the error is that the client has closed its end
	})
	return ends[1], nil
}

// openCapture begins the capture that is requested.
func (v *View) openCapture(r proto.CaptureRequest) (*hca.Capture, error) {
	switch {
	case !v.client.peer.SeesAll():
		return nil, fmt.Errorf("%w: a capture has the packets of all users; run it as root or as the service's user", verbs.ErrPermission)
	case v.stream != nil:
		return nil, fmt.Errorf("%w: the connection has a capture already", verbs.ErrBusy)
	}
	device, err := v.service.find(v.client.peer, r.Device)
	if err != nil {
		return nil, err
	}
	source, can := device.Source.(capturer)
	if !can {
		return nil, fmt.Errorf("%w: %s makes a host for each program, and cannot say which to capture; start the service with roced run --loopback --capture FILE, or with --host, and capture that host",
			verbs.ErrUnsupported, device.Name)
	}
	return source.Capture(hca.CaptureFilter{QPN: r.QPN, Group: r.Group, Snap: int(r.Snap)})
}

// writeCapture writes packets until the client closes its end, or the capture or the view is closed.
func (v *View) writeCapture(capture *hca.Capture, r proto.CaptureRequest) error {
	buffer := bufio.NewWriterSize(v.stream, 64<<10)
	w, err := pcapng.NewWriter(buffer, r.Device, "roced", int(r.Snap))
	for err == nil {
		if len(capture.Packets()) == 0 {
			if err := buffer.Flush(); err != nil {
				return err
			}
		}
		select {
		case p := <-capture.Packets():
			err = w.Write(&pcapng.Packet{Time: p.Time, Out: p.Out, Frame: p.Frame, Length: p.Length, Comment: p.Verdict(), Lost: capture.Lost()})
		case <-capture.Done():
			return buffer.Flush()
		case <-v.over:
			return nil
		}
	}
	return err
}
