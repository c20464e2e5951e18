// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/spf13/cobra"
)

// row is a line of a list. Its JSON object has the fields of the type.
type row interface{ cells() []string }

// noun is the subject of a subcommand: a kind of object.
type noun struct {
	use, short, help string
	header           []string
	rows             func(*daemon.Connection, *listOptions) ([]row, error)
}

// isOfUsers reports whether the list contains objects of users. Unprivileged users see only their own.
func (n *noun) isOfUsers() bool { return strings.HasSuffix(n.help, objectHelp) }

// listOptions holds the command line of a list.
type listOptions struct {
	daemon.Flags
	json  bool
	watch time.Duration
	all   bool // of stat: include zeros
}

// watchEvery is the default interval of --watch.
const watchEvery = time.Second

func (o *listOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.BoolVarP(&o.json, "json", "j", false, "print JSON")
	f.DurationVar(&o.watch, "watch", 0, "refresh `interval` until Ctrl-C (1s if no value is given)")
	f.Lookup("watch").NoOptDefVal = watchEvery.String()
}

func (n *noun) command() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use: n.use, Short: n.short, Long: n.help, Args: o.parseInterval,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch < 0 || cmd.Flags().Changed("watch") && o.watch == 0 {
				return cli.Usage(fmt.Errorf("--watch must be greater than 0, such as --watch=2s: %v", o.watch))
			}
			return o.run(cmd.Context(), n, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd)
	if n.use == statUse {
		cmd.Flags().BoolVarP(&o.all, "all", "a", false, "include counters that are 0")
	}
	return cmd
}

// parseInterval parses the interval of "--watch 2s". Because the value of --watch is optional, cobra passes it as an
// argument.
func (o *listOptions) parseInterval(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && cmd.Flags().Changed("watch") && o.watch == watchEvery {
		if interval, err := time.ParseDuration(args[0]); err == nil {
			o.watch = interval
			return nil
		}
	}
	return cli.NoArguments(cmd, args)
}

// run prints the list once or, with --watch, until ctx is done.
func (o *listOptions) run(ctx context.Context, n *noun, out, errOut io.Writer) error {
	c, err := daemon.Dial(ctx, o.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if n.isOfUsers() && !o.json && !c.SeesAll() {
		fmt.Fprintln(errOut, "objects of other users are hidden; run as root to list all")
	}
	if o.watch > 0 && !o.json && cli.IsTerminal(out) {
		screen := openScreen(out)
		defer screen.close()
		out = screen
	}
	for {
		rows, err := n.rows(c, o)
		if ctx.Err() != nil && o.watch > 0 {
			return nil
		}
		if err == nil {
			err = o.write(out, n, rows)
		}
		if err != nil || o.watch == 0 {
			return err
		}
		select {
		case <-time.After(o.watch):
		case <-ctx.Done():
			return nil
		}
	}
}

func (o *listOptions) write(out io.Writer, n *noun, rows []row) error {
	if o.json {
		if rows == nil {
			rows = []row{}
		}
		return json.NewEncoder(out).Encode(rows)
	}
	text := table(n.header, rows, widthOf(out))
	if _, is := out.(*screen); o.watch > 0 && !is {
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
