// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are the flags of commands whose two sides connect over TCP.
type Flags struct {
	card.Flags
	Host    string // of the server; empty for the server itself
	TCPPort int
}

// OneHost validates the arguments of commands with an optional HOST, the server of a client.
func OneHost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usage(fmt.Errorf("at most one HOST is accepted (got %q); see %s --help", args, cmd.CommandPath()))
	}
	return nil
}

// Add adds the flags to a flag set.
func (m *Flags) Add(f *pflag.FlagSet) {
	m.Flags.Add(f)
	f.IntVarP(&m.TCPPort, "port", "p", 18515, "TCP `port`")
}

// Take stores the arguments accepted by OneHost.
func (m *Flags) Take(args []string) {
	if len(args) == 1 {
		m.Host = args[0]
	}
}

// Check validates the flags before anything is opened.
func (m *Flags) Check() error {
	if m.TCPPort < 0 || m.TCPPort > 65535 || m.TCPPort == 0 && m.Host != "" {
		return fmt.Errorf("--port must be from 1 to 65535: %d", m.TCPPort)
	}
	return m.Flags.Check()
}
