package server

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/roced/roced/internal/pcapng"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// capturing is a Source whose packets can be captured.
type capturing interface {
	Capture(hca.CaptureFilter) (*hca.Capture, error)
}

// startCapture hands the end of a stream over to which a goroutine writes until the connection ends, or
// the device does, or the client closes it. It writes as fast as the client reads: what comes meanwhile
// the capture keeps, or loses and counts.
func startCapture(c *connection, m proto.Message) error {
	r, err := proto.StartCapture.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	capture, err := c.capture(r)
	if err != nil {
		return c.fail(m, err)
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		capture.Close()
		return c.fail(m, fmt.Errorf("%w: a stream for packets: %w", verbs.ErrHost, err))
	}
	_ = unix.Shutdown(ends[0], unix.SHUT_RD) // nobody sends there
	defer unix.Close(ends[1])
	c.stream = os.NewFile(uintptr(ends[0]), "capture")
	c.background.Go(func() {
		defer capture.Close()
		defer c.stream.Close()
		_ = c.writeCapture(capture, r) // its error is that nobody reads any more
	})
	return reply(c, proto.StartCapture.Untyped, m.ID, &proto.None{}, ends[1])
}

// capture begins what is asked for.
func (c *connection) capture(r proto.CaptureRequest) (*hca.Capture, error) {
	switch {
	case !c.peer.seesAll():
		return nil, fmt.Errorf("%w: a capture has the packets of all users; run it as root or as the service's user", verbs.ErrPermission)
	case c.stream != nil:
		return nil, fmt.Errorf("%w: the connection has a capture already", verbs.ErrBusy)
	}
	device, err := c.find(r.Device)
	if err != nil {
		return nil, err
	}
	source, can := device.(capturing)
	if !can {
		return nil, fmt.Errorf("%w: %s makes a host for each program, and cannot say which to capture; start the service with roced run --loopback --capture FILE, or with --host, and capture that host",
			verbs.ErrUnsupported, device.Name())
	}
	return source.Capture(hca.CaptureFilter{QPN: r.QPN, Group: r.Group, Snap: int(r.Snap)})
}

// writeCapture writes packets until nobody reads any more, or none come any more.
func (c *connection) writeCapture(capture *hca.Capture, r proto.CaptureRequest) error {
	buffer := bufio.NewWriterSize(c.stream, 64<<10)
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
		case <-c.over:
			return nil
		}
	}
	return err
}
