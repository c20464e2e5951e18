// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// ReplyTimeout is the default time limit of a response that needs no measurement. Only tests on slow machines change it.
var ReplyTimeout = 10 * time.Second

// maxLine is the maximum length of a line from a peer, in bytes.
const maxLine = 1 << 20

// errLongLine reports a line that exceeds maxLine.
var errLongLine = fmt.Errorf("the peer's line is longer than 1 MiB: %w", unix.EMSGSIZE)

// Message is the content of a line of JSON.
type Message interface {
	// Required returns the fields that a line must have.
	Required() []string
}

// read forwards lines until the connection ends.
func (c *Control) read() {
	scanner := bufio.NewScanner(c.conn)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		line := append([]byte(nil), scanner.Bytes()...)
		select {
		case c.lines <- line:
		case <-c.ctx.Done():
			return
		}
	}
	err := scanner.Err()
	switch {
	case err == nil:
		err = io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("%v: %w", c.conn.RemoteAddr(), errLongLine)
	}
	c.cancel(c.Explain(err))
}

// Send writes a message as a line.
func (c *Control) Send(message Message) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.Timeout)); err != nil {
		return c.Explain(err)
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return c.Explain(err)
	}
	return nil
}

// Receive waits for a line until ctx is done or the connection ends.
func (c *Control) Receive(ctx context.Context, message Message) error {
	select {
	case line := <-c.lines:
		return decode(line, message)
	case <-ctx.Done():
	}
	select { // prefer a line received before the end
	case line := <-c.lines:
		return decode(line, message)
	default:
		return context.Cause(ctx)
	}
}

// Early decodes a line that has already arrived, without waiting. It reports whether one had.
func (c *Control) Early(message Message) (came bool, err error) {
	select {
	case line := <-c.lines:
		return true, decode(line, message)
	default:
		return false, nil
	}
}

// decode decodes a message. Other messages are EBADMSG.
func decode(line []byte, message Message) error {
	err := checkFields(line, message.Required())
	if err == nil {
		err = json.Unmarshal(line, message)
	}
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return Impossible(mistyped.Field, mistyped.Value)
	}
	return fmt.Errorf("the peer sent %.80q, which is invalid in roced perf's protocol (%s): %w", line, Printable(err.Error()), unix.EBADMSG)
}

func checkFields(line []byte, required []string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("null")
	}
	for _, name := range required {
		if value, there := fields[name]; !there || string(value) == "null" {
			return fmt.Errorf("no %q", name)
		}
	}
	return nil
}

// ReceiveSoon is Receive with the time limit of a response that needs no measurement.
func (c *Control) ReceiveSoon(message Message) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Timeout, fmt.Errorf("%v does not respond within %v: %w", c.conn.RemoteAddr(), c.Timeout, unix.ETIMEDOUT))
	defer cancel()
	return c.Receive(ctx, message)
}
