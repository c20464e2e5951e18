package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/spf13/cobra"
)

const help = `Sockets of the service for containers. All programs that come by one count as one user,
whatever their uids: it has limits of its own ([limits]), sees nothing of others, and has
no privileges. They stay when the service is started anew. Root and the service's user
make them. roced cdi generate writes what a container engine needs to pass one on.`

// New is the command.
func New() *cobra.Command {
	cmd := &cobra.Command{Use: "socket", Short: "Make sockets of the service for containers", Long: help}
	cmd.AddCommand(
		action("add NAME", "Make a socket, and print its path", func(c *daemon.Connection, name string) error {
			path, err := c.AddSocket(name)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		}),
		action("remove NAME", "Remove a socket; the connections by it end", func(c *daemon.Connection, name string) error {
			return c.RemoveSocket(name)
		}),
		list(),
	)
	return cmd
}

// longestName is what there is room for in a message; the service says what else a name may be.
const longestName = 63

// action is a command that asks the service.
func action(use, short string, do func(*daemon.Connection, string) error) *cobra.Command {
	var service string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Names(1), Example: "  roced socket " + use[:len(use)-len("NAME")] + "web1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args[0]) > longestName {
				return cli.Usage(fmt.Errorf("socket %q: a name has at most %d letters, digits, and . _ -", args[0], longestName))
			}
			c, err := daemon.Dial(cmd.Context(), service)
			if err != nil {
				return err
			}
			defer c.Close()
			return do(c, args[0])
		},
	}
	daemon.AddDefaultSocket(cmd.Flags(), &service)
	return cmd
}

// list prints those that there are.
func list() *cobra.Command {
	var service string
	cmd := &cobra.Command{
		Use: "list", Short: "List the sockets: names and paths", Args: cli.NoArguments, Example: "  roced socket list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder := filepath.Join(filepath.Dir(service), "sockets")
			names, err := os.ReadDir(folder)
			switch {
			case errors.Is(err, fs.ErrPermission):
				return fmt.Errorf("%w; root and the service's user may list the sockets", err)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
			for _, name := range names {
				if strings.HasPrefix(name.Name(), ".") { // a removed one's folder, or a socket that is being made
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", name.Name(), filepath.Join(folder, name.Name(), "roced.sock"))
			}
			return nil
		},
	}
	daemon.AddDefaultSocket(cmd.Flags(), &service)
	return cmd
}
