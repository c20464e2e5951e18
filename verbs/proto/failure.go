// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"errors"
	"slices"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// kinds are the errors of package verbs, by their bits in a failure. New ones are appended.
var kinds = []error{
	verbs.ErrInvalid, verbs.ErrState, verbs.ErrQueueFull, verbs.ErrLimit, verbs.ErrBusy, verbs.ErrPermission,
	verbs.ErrUnsupported, verbs.ErrUnreachable, verbs.ErrNoGID, verbs.ErrCQOverrun, verbs.ErrDeviceFatal, verbs.ErrClosed,
	verbs.ErrObjectClosed, verbs.ErrHost, verbs.ErrAddrNotAvail, verbs.ErrAddrInUse, verbs.ErrNotFound,
}

const (
	maxErrnos = 4
	maxText   = 2048 // bytes
)

// failure is an encoded error: the errors of package verbs that it wraps, the first errnos that it wraps, and its text.
type failure struct {
	kinds  uint64
	errnos [maxErrnos]uint32 // the first is what libibverbs gives for it; 0 behind the last
	text   []byte
}

func (f *failure) visit(c *coder) {
	u64(c, "kinds", &f.kinds)
	if c.direction == describing {
		c.describe("errnos", "uint32_t", 4, maxErrnos)
	} else {
		for i := range f.errnos {
			u32(c, "errno", &f.errnos[i])
		}
	}
	list(c, "text", maxText, &f.text, func(c *coder, b *byte) { u8(c, "byte", b) })
}

func newFailure(err error) (f failure) {
	for bit, kind := range kinds {
		if errors.Is(err, kind) {
			f.kinds |= 1 << bit
		}
	}
	errnos := errnosOf(err)
	if len(errnos) > 1 && errnos[0] == unix.EIO && errors.Is(err, verbs.ErrHost) {
		errnos = append(errnos[1:], unix.EIO) // libibverbs returns the kernel's errno
	}
	for i, errno := range errnos {
		f.errnos[i] = uint32(errno)
	}
	f.text = []byte(clip(err.Error(), maxText))
	return f
}

// errnosOf returns the first different errnos that an error wraps; EIO if there are none.
func errnosOf(err error) (found []unix.Errno) {
	var visit func(error)
	visit = func(err error) {
		switch wraps := err.(type) {
		case unix.Errno:
			if len(found) < maxErrnos && !slices.Contains(found, wraps) {
				found = append(found, wraps)
			}
		case interface{ Unwrap() error }:
			visit(wraps.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range wraps.Unwrap() {
				visit(inner)
			}
		}
	}
	if visit(err); len(found) == 0 {
		found = []unix.Errno{unix.EIO}
	}
	return found
}

// remoteError is an error of the other side.
type remoteError struct {
	text  string
	wraps []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.wraps }

func (f *failure) error() error {
	e := &remoteError{text: string(f.text)}
	for _, errno := range f.errnos { // before the kinds, which have errnos too
		if errno != 0 {
			e.wraps = append(e.wraps, unix.Errno(errno))
		}
	}
	for bit, kind := range kinds {
		if f.kinds&(1<<bit) != 0 {
			e.wraps = append(e.wraps, kind)
		}
	}
	return e
}

// EncodeFailure encodes the reply to a failed request. With kind Ended it contains the reason why the session has
// ended.
func EncodeFailure(kind Kind, code uint16, id uint32, cause error) []byte {
	m, f := Message{Code: code, Kind: kind, ID: id}, newFailure(cause)
	packet, _ := m.encode(nil, f.visit)
	return packet
}

// DecodeFailure parses the body of a Failure or Ended. The returned error wraps the same errors as the other side's
// error, and has its text.
func DecodeFailure(body []byte) (cause, err error) {
	var f failure
	if err := decode(body, nil, f.visit); err != nil {
		return nil, err
	}
	return f.error(), nil
}
