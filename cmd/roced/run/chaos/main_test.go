// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/run"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const (
	// childVariable makes the test binary run as a service or a program.
	childVariable = "ROCED_CHAOS_CHILD"
	// stacksVariable is the file to which a service writes its goroutines at each SIGUSR1.
	stacksVariable = "ROCED_CHAOS_STACKS"
)

// patience limits the wait for expected events.
var patience = waittest.Limit

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		labtest.Main(m)
	}
	if path := os.Getenv(stacksVariable); path != "" {
		go writeStacks(path)
	}
	cli.Main(func(*slog.Logger) []*cobra.Command { return []*cobra.Command{run.New(), programCommand()} })
}

// writeStacks writes the number and the stacks of all goroutines at each SIGUSR1.
func writeStacks(path string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	for range signals {
		file, err := os.Create(path + ".new")
		if err == nil {
			err = pprof.Lookup("goroutine").WriteTo(file, 1)
			_ = file.Close()
		}
		if err == nil {
			_ = os.Rename(path+".new", path)
		}
	}
}

var (
	check      = errtest.Check
	eventually = waittest.Eventually
)
