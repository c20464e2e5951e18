package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/spf13/cobra"
)

// row is a line of a list; in JSON an object, by its fields' tags.
type row interface{ cells() []string }

// noun is what a subcommand lists.
type noun struct {
	use, short, help string
	header           []string
	rows             func(*daemon.Connection, *listOptions) ([]row, error)
}

// listOptions is the command line of a list.
type listOptions struct {
	daemon.Flags
	json  bool
	watch time.Duration
	all   bool // of stat: zeros too
}

// watchEvery is how often --watch looks if it has no value.
const watchEvery = time.Second

func (o *listOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.BoolVarP(&o.json, "json", "j", false, "JSON")
	f.DurationVar(&o.watch, "watch", 0, "look again each `interval`, until Ctrl-C; without a value each second")
	f.Lookup("watch").NoOptDefVal = watchEvery.String()
}

func (n *noun) command() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use: n.use, Short: n.short, Long: n.help, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.watch < 0 || cmd.Flags().Changed("watch") && o.watch == 0 {
				return cli.Usage(fmt.Errorf("--watch %v: an interval is more than 0, as --watch=2s", o.watch))
			}
			return o.run(cmd.Context(), n, cmd.OutOrStdout())
		},
	}
	o.add(cmd)
	if n.use == statUse {
		cmd.Flags().BoolVarP(&o.all, "all", "a", false, "counters that are 0 too")
	}
	return cmd
}

// run shows the list once, or until ctx is done.
func (o *listOptions) run(ctx context.Context, n *noun, out io.Writer) error {
	c, err := daemon.Dial(ctx, o.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
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

// clearScreen moves a terminal's cursor to the top, and clears what is there.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

func (o *listOptions) write(out io.Writer, n *noun, rows []row) error {
	if o.json {
		if rows == nil {
			rows = []row{}
		}
		return json.NewEncoder(out).Encode(rows)
	}
	text, err := table(n.header, rows)
	switch {
	case err != nil:
		return err
	case o.watch > 0 && cli.IsTerminal(out):
		text = clearScreen + text
	case o.watch > 0:
		text += "\n"
	}
	_, err = io.WriteString(out, text)
	return err
}

// table is a header, and a line for each row, in columns.
func table(header []string, rows []row) (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, r := range rows {
		_, failed := fmt.Fprintln(w, daemon.Printable(strings.Join(r.cells(), "\t")))
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, w.Flush())
	return b.String(), err
}
