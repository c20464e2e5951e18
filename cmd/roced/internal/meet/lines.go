package meet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// replyTimeout is how long a peer may take for an answer that needs no measurement, by default.
	ReplyTimeout = 10 * time.Second
	// maxLine bounds what a peer may send, in bytes.
	maxLine = 1 << 20
)

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
	if err == nil {
		err = io.EOF
	}
	c.cancel(c.Explain(err))
}

// Send writes a message as a line.
func (c *Control) Send(message any) error {
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
func (c *Control) Receive(ctx context.Context, message any) error {
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

func decode(line []byte, message any) error {
	if err := json.Unmarshal(line, message); err != nil {
		return fmt.Errorf("the peer sent %.80q, which is not roced perf's protocol: %w", line, err)
	}
	return nil
}

// ReceiveSoon is receive for answers that need no measuring.
func (c *Control) ReceiveSoon(message any) error {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.Timeout, fmt.Errorf("no answer from %v within %v: %w", c.conn.RemoteAddr(), c.Timeout, unix.ETIMEDOUT))
	defer cancel()
	return c.Receive(ctx, message)
}
