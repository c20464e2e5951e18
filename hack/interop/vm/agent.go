// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/roced/roced/hack/interop/job"
)

// ExitError is the exit status of a failed script in a guest, or 124 after a timeout.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// defaultTime is the time limit of a script whose context has no deadline.
const defaultTime = time.Minute

// Run runs a shell script in the guest, and returns its standard output and standard error. It returns an ExitError for
// an exit status other than 0. The script is killed at ctx's deadline.
func (v *VM) Run(ctx context.Context, script string) (string, error) {
	return v.Start(ctx, script).Wait()
}

// Start is like Run, and runs the script in the background.
func (v *VM) Start(ctx context.Context, script string) *job.Job {
	return job.Start(func(out io.Writer) error { return v.run(ctx, script, out) })
}

func (v *VM) run(ctx context.Context, script string, out io.Writer) error {
	select {
	case p := <-v.ports:
		defer func() { v.ports <- p }()
		status, err := p.run(ctx, script, out)
		if err != nil {
			return fmt.Errorf("%s's agent: %w%s; end of the console output:\n%s", v.config.Name, err, v.ending(), v.consoleTail())
		}
		if status != 0 {
			return ExitError(status)
		}
		return nil
	case <-v.qemu.Done():
		return fmt.Errorf("%s has ended", v.config.Name)
	case <-ctx.Done():
		return fmt.Errorf("all of %s's agents are busy: %w", v.config.Name, ctx.Err())
	}
}

// port is the host's end of the connection to one of the guest's agents (protocol: image/guest/vm-agent). Each request
// has a nonce, so that output of abandoned requests is skipped.
type port struct {
	conn net.Conn
	in   *bufio.Reader
}

func newPort(conn net.Conn) *port { return &port{conn, bufio.NewReader(conn)} }

func (p *port) run(ctx context.Context, script string, out io.Writer) (status int, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(defaultTime)
	}
	// The agent enforces the deadline. The additional time is for a guest that hangs.
	p.conn.SetDeadline(deadline.Add(10 * time.Second))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			p.conn.SetDeadline(time.Now())
		}
	})
	defer stop()
	nonce := rand.Text()
	seconds := max(1, int(time.Until(deadline).Seconds()+0.999))
	script += "\n"
	if _, err := fmt.Fprintf(p.conn, "RUN %s %d %d\n%s", nonce, seconds, len(script), script); err != nil {
		return 0, err
	}
	if err := p.copyUntil(io.Discard, nonce+" BEGIN\n"); err != nil {
		return 0, err
	}
	if err := p.copyUntil(out, nonce+" EXIT "); err != nil {
		return 0, err
	}
	text, err := p.in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(text))
}

// copyUntil copies the text before mark without buffering. The agent writes a newline before a mark, and a mark
// contains no other newline except at its end, so after a failed match no match can begin inside it.
func (p *port) copyUntil(w io.Writer, mark string) error {
	matched := 0
	for matched < len(mark) {
		c, err := p.in.ReadByte()
		if err != nil {
			return err
		}
		if c == mark[matched] {
			matched++
			continue
		}
		io.WriteString(w, mark[:matched])
		if matched = 0; c == mark[0] {
			matched = 1
			continue
		}
		w.Write([]byte{c})
	}
	return nil
}
