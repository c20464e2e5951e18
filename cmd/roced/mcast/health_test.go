// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab/labtest"
	"golang.org/x/sys/unix"
)

// TestMTUIsLowered: the current MTU is reported, and sends above it fail with the cause.
func TestMTUIsLowered(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	b := cmdtest.Start(t, mcastArgs(hosts.A, testGroup4+" --send --send-only --count 0 --rate 100 --size 1024")...)
	b.Await(t, listening)
	cmdtest.SetMTU(t, hosts.A, 700)
	code, _ := b.Wait()
	stderr := b.Stderr()
	if code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	cmdtest.CheckSays(t, stderr, "the message exceeds the RDMA MTU, now 512 because the MTU of eth0 is 700; it was 1024 at the start")
	cmdtest.CheckFailure(t, mcastArgs(hosts.A, testGroup4+" --send --size 1000"), cli.ExitFailed, "exceed the RDMA MTU, which is 512 because the MTU of the interface is 700")
}

// TestMTUChangeIsLogged: a command that does not send also logs MTU changes.
func TestMTUChangeIsLogged(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	c := cmdtest.Command(t, mcastArgs(hosts.A, testGroup4)...)
	said := make(lines, 1000)
	c.Stderr = said
	c.Start(t)
	c.Await(t, listening)
	cmdtest.SetMTU(t, hosts.A, 700)
	for line := range said {
		if strings.Contains(line, "RDMA MTU has changed") {
			cmdtest.CheckSays(t, line, "device=eth0", "rdma_mtu=512", "interface_mtu=700", "at_start=1024")
			break
		}
	}
	c.Process.Signal(unix.SIGINT)
	if code, _ := c.End(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// lines is a writer whose lines can be awaited.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
