// SPDX-License-Identifier: Apache-2.0

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

// options holds the command line.
type options struct {
	daemon.Flags
	json bool
}

const help = `Prints events of the service, one per line, until Ctrl-C or the end of the service:

- programs that open or close a device, or exit;
- device events: link up and down, addresses, MTU, failure, and opening;
- object events of programs: overrun of a completion queue, failure or last WQE of a queue
  pair, limit of a shared receive queue, and queue pairs that the card moves to SQE or ERR.

Root and the user of the service see events of all programs, other users only those of
their own. Events are queued while earlier ones are printed; if the queue overflows, a line
reports the number of lost events.`

// New returns the command.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use: "monitor", Short: "Print events of the service", Long: help, Args: cli.NoArguments,
		Example: "  roced monitor\n  roced monitor -d eth0 -j",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Flags.Add(f)
	f.BoolVarP(&o.json, "json", "j", false, "print JSON, one object per line")
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
