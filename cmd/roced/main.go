// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"

	"github.com/roced/roced/cmd/roced/cdi"
	"github.com/roced/roced/cmd/roced/config"
	"github.com/roced/roced/cmd/roced/demo"
	"github.com/roced/roced/cmd/roced/doctor"
	"github.com/roced/roced/cmd/roced/dump"
	"github.com/roced/roced/cmd/roced/exec"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/man"
	"github.com/roced/roced/cmd/roced/mcast"
	"github.com/roced/roced/cmd/roced/monitor"
	"github.com/roced/roced/cmd/roced/netdev"
	"github.com/roced/roced/cmd/roced/perf"
	"github.com/roced/roced/cmd/roced/ping"
	"github.com/roced/roced/cmd/roced/run"
	"github.com/roced/roced/cmd/roced/show"
	"github.com/roced/roced/cmd/roced/socket"
	"github.com/roced/roced/cmd/roced/version"
	"github.com/spf13/cobra"
)

func main() { cli.Main(commands) }

// commands returns the subcommands.
func commands(log *slog.Logger) []*cobra.Command {
	return []*cobra.Command{
		cdi.New(),
		config.New(),
		demo.New(log),
		doctor.New(),
		dump.New(),
		exec.New(log),
		man.New(),
		mcast.New(log),
		monitor.New(),
		netdev.New(log),
		perf.New(log),
		ping.New(log),
		run.New(),
		show.New(),
		socket.New(),
		version.New(),
	}
}
