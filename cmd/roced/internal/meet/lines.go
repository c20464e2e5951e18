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

const (
	// ReplyTimeout is how long a peer may take for an answer that needs no measurement, by default.
	ReplyTimeout = 10 * time.Second
	// maxLine bounds what a peer may send, in bytes.
	maxLine = 1 << 20
)

// errLongLine: the peer has sent so much without an end of line.
var errLongLine = fmt.Errorf("the peer's line is longer than 1 MiB: %w", unix.EMSGSIZE)

// Message is what a line of JSON says.
type Message interface {
	// Required names the fields without which a line is another message.
	Required() []string
}

// read passes lines on until the connection ends.
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
	select { // a line that came before the end counts
	case line := <-c.lines:
		return decode(line, message)
	default:
		return context.Cause(ctx)
	}
}

// Early takes a line that has come without having been waited for, if there is one.
func (c *Control) Early(message Message) (came bool, err error) {
	select {
	case line := <-c.lines:
		return true, decode(line, message)
	default:
		return false, nil
	}
}

// decode takes this message, and no other: the error of another is EBADMSG.
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
	return fmt.Errorf("the peer sent %.80q, which is not roced perf's protocol (%s): %w", line, Printable(err.Error()), unix.EBADMSG)
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

// ReceiveSoon is receive for answers that need no measuring.
func (c *Control) ReceiveSoon(message Message) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Timeout, fmt.Errorf("no answer from %v within %v: %w", c.conn.RemoteAddr(), c.Timeout, unix.ETIMEDOUT))
	defer cancel()
	return c.Receive(ctx, message)
}
