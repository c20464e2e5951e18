package meet

import (
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are those of the commands whose two sides find each other over TCP.
type Flags struct {
	card.Flags
	Host    string // the server's, empty for the server itself
	TCPPort int
}

// OneHost is for the client's arguments: it names its server.
func OneHost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usage(fmt.Errorf("one HOST at most, not %q; see %s --help", args, cmd.CommandPath()))
	}
	return nil
}

// Add adds the flags to a command's.
func (m *Flags) Add(f *pflag.FlagSet) {
	m.Flags.Add(f)
	f.IntVarP(&m.TCPPort, "port", "p", 18515, "TCP `port`")
}

// Take keeps what OneHost has let through.
func (m *Flags) Take(args []string) {
	if len(args) == 1 {
		m.Host = args[0]
	}
}

// Check finds mistakes before anything is opened.
func (m *Flags) Check() error {
	if m.TCPPort < 0 || m.TCPPort > 65535 || m.TCPPort == 0 && m.Host != "" {
		return fmt.Errorf("--port %d: TCP ports are 1 to 65535", m.TCPPort)
	}
	return m.Flags.Check()
}
