// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// TestErrno checks that every sentinel unwraps to the errno of libibverbs, through any wrapping.
func TestErrno(t *testing.T) {
	rows := []struct {
		err   error
		errno unix.Errno
	}{
		{ErrInvalid, unix.EINVAL}, {ErrState, unix.EINVAL}, {ErrQueueFull, unix.ENOMEM}, {ErrLimit, unix.ENOMEM},
		{ErrBusy, unix.EBUSY}, {ErrPermission, unix.EPERM}, {ErrUnsupported, unix.EOPNOTSUPP},
		{ErrUnreachable, unix.EHOSTUNREACH}, {ErrNoGID, unix.ENODATA}, {ErrCQOverrun, unix.EOVERFLOW}, {ErrDeviceFatal, unix.EIO}, {ErrClosed, unix.ENODEV}, {ErrObjectClosed, unix.EINVAL},
		{ErrAddrNotAvail, unix.EADDRNOTAVAIL}, {ErrAddrInUse, unix.EADDRINUSE},
	}
	for _, row := range rows {
		wrapped := fmt.Errorf("post: %w", &BadWRError{3, fmt.Errorf("%w: what to do", row.err)})
		if !errors.Is(wrapped, row.errno) || !errors.Is(wrapped, row.err) {
			t.Errorf("errors.Is(%v, %v) is false", wrapped, row.errno)
		}
		if errors.Is(wrapped, unix.ENOENT) {
			t.Errorf("errors.Is(%v, ENOENT) is true", wrapped)
		}
		var bad *BadWRError
		if !errors.As(wrapped, &bad) || bad.Index != 3 || !contains(bad, "work request 3") {
			t.Errorf("%v: got no index, want work request 3", wrapped)
		}
	}
	if errors.Is(ErrInvalid, ErrState) || errors.Is(ErrQueueFull, ErrLimit) {
		t.Error("sentinels of the same errno match one another")
	}
}

// TestCompletionErr checks that the error of a completion's status contains the remedy.
func TestCompletionErr(t *testing.T) {
	rows := []struct {
		status WCStatus
		errno  unix.Errno
		says   string
	}{
		{WCLocLenErr, unix.EMSGSIZE, "MTU"},
		{WCLocQPOpErr, unix.EINVAL, "address handle"},
		{WCLocProtErr, unix.EFAULT, "lkey"},
		{WCWRFlushErr, unix.ECANCELED, "Modify to RTS"},
		{WCGeneralErr, unix.EIO, "general error"},
	}
	for _, row := range rows {
		err := (&WC{Status: row.status}).Err()
		if !errors.Is(err, row.errno) || !contains(err, row.says) {
			t.Errorf("%v: got %v, want %v with the text %q", row.status, err, row.errno, row.says)
		}
	}
	if err := new(WC).Err(); err != nil {
		t.Errorf("success: got %v, want nil", err)
	}
	long := (&WC{Status: WCLocLenErr, VendorErr: 2048}).Err()
	if !errors.Is(long, unix.EMSGSIZE) || !contains(long, "active MTU of 2048 bytes") || contains(long, "1500") {
		t.Errorf("message longer than an MTU of 2048: got %v", long)
	}
}

// TestPayload checks that Payload returns nil if there is no payload, and never more than the buffer.
func TestPayload(t *testing.T) {
	buffer := make([]byte, 100)
	rows := []struct {
		name string
		wc   WC
		from []byte
		grh  int
		data int
	}{
		{"a message", WC{Flags: WCGRH, ByteLen: 60}, buffer, 40, 20},
		{"an empty message", WC{Flags: WCGRH, ByteLen: 40}, buffer, 40, 0},
		{"fills the buffer", WC{Flags: WCGRH, ByteLen: 100}, buffer, 40, 60},
		{"no GRH", WC{ByteLen: 60}, buffer, 0, 0},
		{"length below the GRH's", WC{Flags: WCGRH, ByteLen: 39}, buffer, 0, 0},
		{"buffer too short", WC{Flags: WCGRH, ByteLen: 101}, buffer, 0, 0},
		{"no buffer", WC{Flags: WCGRH, ByteLen: 40}, nil, 0, 0},
	}
	for _, row := range rows {
		grh, data := row.wc.Payload(row.from)
		if len(grh) != row.grh || len(data) != row.data || cap(data) != row.data || cap(grh) != row.grh {
			t.Errorf("%s: got %d of %d and %d of %d bytes, want %d and %d", row.name, len(grh), cap(grh), len(data), cap(data), row.grh, row.data)
		}
	}
}

// TestNils checks that nil arguments cause an error, not a panic.
func TestNils(t *testing.T) {
	var none *QP
	if err := none.PostSend(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("PostSend of a nil QP: got %v", err)
	}
	if err := none.PostRecv(nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("PostRecv of a nil QP: got %v", err)
	}
	var noContext context.Context
	for name, err := range map[string]error{
		"Wait":          second(new(CQ).Wait(noContext, nil)),
		"GetAsyncEvent": second(new(Context).GetAsyncEvent(noContext)),
		"CreateAH":      second(new(PD).CreateAH(noContext, &AHAttr{})),
		"Drain":         new(QP).Drain(noContext),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s with a nil context: got %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
