// SPDX-License-Identifier: Apache-2.0

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

const help = `Manages sockets of the service for containers. All programs that use such a socket count
as one user, regardless of uid: it has its own limits ([limits]), sees no objects of
others, and has no privileges. Sockets persist across restarts of the service. Only root
and the user of the service can create them. roced cdi generate writes the specification
with which a container engine passes a socket to a container.`

// New returns the command.
func New() *cobra.Command {
	cmd := &cobra.Command{Use: "socket", Short: "Manage sockets of the service for containers", Long: help}
	cmd.AddCommand(
		action("add NAME", "Create a socket and print its path", func(c *daemon.Connection, name string) error {
			path, err := c.AddSocket(name)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		}),
		action("remove NAME", "Remove a socket and close its connections", func(c *daemon.Connection, name string) error {
			return c.RemoveSocket(name)
		}),
		list(),
	)
	return cmd
}

// maxName is the maximum length of a name in a message; the service checks its characters.
const maxName = 63

// action returns a command that sends a request to the service.
func action(use, short string, do func(*daemon.Connection, string) error) *cobra.Command {
	var service string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Names(1), Example: "  roced socket " + use[:len(use)-len("NAME")] + "web1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args[0]) > maxName {
				return cli.Usage(fmt.Errorf("socket name must have at most %d letters, digits, and . _ -: %q", maxName, args[0]))
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

// list returns the command that prints the existing sockets.
func list() *cobra.Command {
	var service string
	cmd := &cobra.Command{
		Use: "list", Short: "List the sockets: names and paths", Args: cli.NoArguments, Example: "  roced socket list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder := filepath.Join(filepath.Dir(service), "sockets")
			names, err := os.ReadDir(folder)
			switch {
			case errors.Is(err, fs.ErrPermission):
				return fmt.Errorf("%w; only root and the user of the service can list sockets", err)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			}
			for _, name := range names {
				if strings.HasPrefix(name.Name(), ".") { // a removed socket, or one being created
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
