package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/spf13/cobra"
)

// options is the command line.
type options struct {
	daemon.Flags
	json bool
}

const help = `Prints what happens at the service, a line an event, until Ctrl-C or the service's end:

- programs that open a device, and that close it or end;
- events of devices: link up and down, addresses, MTU, failure, and that one is open (again);
- events of programs' objects: a completion queue that is overrun, a queue pair that fails or
  has ended, a limit of a shared receive queue; and queue pairs that the card moves to SQE or ERR.

Of all programs for root and the service's own user, for others of their own. Events are
kept while they are printed; if that is too slow, a line says how many were lost.`

// New is the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "monitor", Short: "Print what happens at the service, as it happens", Long: help, Args: cli.NoArguments,
		Example: "  roced monitor\n  roced monitor -d eth0 -j",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.BoolVarP(&o.json, "json", "j", false, "JSON, an object a line")
	return cmd
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	c, err := daemon.Dial(ctx, o.Socket)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Choose(o.Device); err != nil {
		return err
	}
	for {
		news, err := c.NextEvents()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range news.Events {
			e := newEvent(&news.Events[i])
			if o.Device != "" && e.Device != o.Device {
				continue
			}
			if err := o.print(out, e); err != nil {
				return err
			}
		}
		if news.Lost > 0 {
			if err := o.print(out, &event{What: "lost", Lost: news.Lost}); err != nil {
				return err
			}
		}
	}
}

func (o *options) print(out io.Writer, e *event) error {
	if o.json {
		return json.NewEncoder(out).Encode(e)
	}
	_, err := fmt.Fprintln(out, daemon.Printable(e.String()))
	return err
}
