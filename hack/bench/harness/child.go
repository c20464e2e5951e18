// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"

	"github.com/roced/roced/verbs/hca"
	"github.com/vishvananda/netns"
)

// A child receives its job as an argument, prints an Endpoint when it is ready, and a Result at the end of the job or
// of its standard input.

// Child is the parent's handle of a running child process.
type Child struct {
	Command *exec.Cmd
	input   io.WriteCloser
	output  *json.Decoder
	Ready   Endpoint
}

// nobody is the uid of an unprivileged user.
const nobody = 65534

// Start starts a child, and waits until it is ready. A child whose card uses UDP sockets runs as an unprivileged user.
func Start(j Job) (*Child, error) {
	inside := ""
	if j.Network == hca.NetworkUDP { // runs as an unprivileged user, started inside the namespace
		inside, j.Namespace = j.Namespace, ""
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := &Child{Command: exec.Command("/proc/self/exe", "child", string(text))}
	c.Command.Stderr = os.Stderr
	if inside != "" {
		c.Command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if c.input, err = c.Command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.Command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = json.NewDecoder(out)
	if err := hca.RunIn(inside, c.Command.Start); err != nil {
		return nil, err
	}
	if err := c.output.Decode(&c.Ready); err != nil {
		_ = c.Command.Process.Kill()
		_ = c.Command.Wait()
		return nil, fmt.Errorf("%s %s: %w", j.Variant, j.Role, err)
	}
	return c, nil
}

// Finish waits for the child's result. With stop it ends the child first.
func (c *Child) Finish(stop bool) (r Result, err error) {
	if stop {
		_ = c.input.Close()
	}
	err = c.output.Decode(&r)
	_ = c.input.Close()
	if waited := c.Command.Wait(); err == nil {
		err = waited
	}
	return r, err
}

// Stopping is set and UntilStopped is cancelled when the parent closes the child's standard input.
var (
	Stopping           atomic.Bool
	UntilStopped, stop = context.WithCancel(context.Background())
)

// Roles contains the functions of a child. The key is the variant and the role, separated by a space.
type Roles map[string]func(Job) (Result, error)

// Serve is the main function of a child: it calls prepare and executes the job in text.
func Serve(text string, all Roles, prepare func(Job) error) error {
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	if err := prepare(j); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		Stopping.Store(true)
		stop()
	}()
	run := all[j.Variant+" "+j.Role]
	if run == nil {
		return fmt.Errorf("no such job: %s %s", j.Variant, j.Role)
	}
	r, err := run(j)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func Enter(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return netns.Set(ns)
}

// Announce notifies the parent that the child is ready.
func Announce(e Endpoint) error { return json.NewEncoder(os.Stdout).Encode(e) }
