package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meetFlags are those of the commands whose two sides find each other over TCP.
type meetFlags struct {
	cardFlags
	host    string // the server's, empty for the server itself
	tcpPort int
}

// oneHost is for the client's arguments: it names its server.
func oneHost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError{fmt.Errorf("one HOST at most, not %q; see %s --help", args, cmd.CommandPath())}
	}
	return nil
}

func (m *meetFlags) add(f *pflag.FlagSet) {
	m.cardFlags.add(f)
	f.IntVarP(&m.tcpPort, "port", "p", 18515, "TCP `port`")
}

// take keeps what oneHost has let through.
func (m *meetFlags) take(args []string) {
	if len(args) == 1 {
		m.host = args[0]
	}
}

func (m *meetFlags) check() error {
	if m.tcpPort < 0 || m.tcpPort > 65535 || m.tcpPort == 0 && m.host != "" {
		return fmt.Errorf("--port %d: TCP ports are 1 to 65535", m.tcpPort)
	}
	return m.cardFlags.check()
}
