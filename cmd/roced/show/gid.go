// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/spf13/cobra"
)

// gidOptions holds the command line of show gid.
type gidOptions struct {
	card.InterfaceFlags
	socket string
	json   bool
}

const gidHelp = `Lists the GID table of an interface: its addresses, each with its index for -g
(--gid-index). Index 0 is the default, a routable IPv4 address; if there is none, it is a
copy of the best other entry. A running program keeps the index of an address while the
address exists.

No device is opened, and no privileges are needed except for --netns. With --socket or
ROCED_SOCKET, the table is that of programs of that service. The device "loop" of an
in-memory network has the tables of all hosts, named in column NETDEV. Devices without a
card have no table.`

func newGIDCommand() *cobra.Command {
	o := &gidOptions{}
	cmd := &cobra.Command{
		Use:     "gid -d DEVICE",
		Short:   "List the GIDs of an interface, by index for --gid-index",
		Long:    gidHelp,
		Example: "  roced show gid -d eth0\n  roced show gid -d eth0 -j",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !daemon.SocketGiven(cmd.Flags()) && o.Namespace == "" {
				o.socket = daemon.NamedSocket()
			}
			if o.socket != "" {
				return o.query(cmd.Context(), cmd.OutOrStdout())
			}
			if err := o.Check(); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.InterfaceFlags.Add(f)
	daemon.AddSocket(f, &o.socket, "`socket` of a service whose devices to list (all, or that of -d), such as "+client.DefaultPath)
	f.BoolVarP(&o.json, "json", "j", false, "print JSON")
	return cmd
}

// gidLine is a row of the table.
type gidLine struct {
	Index     int    `json:"index"`
	GID       string `json:"gid"`
	Type      string `json:"type"`
	Version   string `json:"version"` // of IP
	Interface string `json:"netdev"`
	Default   bool   `json:"default"`
}

// gidType is the type of all GIDs, as named by the kernel.
const gidType = "RoCE v2"

func newGIDLine(e verbs.GIDEntry) gidLine {
	version := "IPv6"
	if e.GID.IsIPv4() {
		version = "IPv4"
	}
	return gidLine{e.Index, e.GID.String(), gidType, version, e.Interface, e.Index == 0}
}

func (o *gidOptions) run(out io.Writer) error {
	if err := o.Enter(); err != nil {
		return err
	}
	var options []hca.Option
	if o.Namespace != "" {
		options = append(options, hca.InNamespace(o.Path()))
	}
	entries, err := hca.ListGIDs(o.Device, options...)
	if err != nil {
		return err
	}
	if len(entries) == 0 && !o.json {
		return card.NoAddress(o.Device)
	}
	return o.write(out, entries)
}

// query lists the GIDs of the service's devices.
func (o *gidOptions) query(ctx context.Context, out io.Writer) error {
	c, err := daemon.Dial(ctx, o.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	names, err := c.Choose(o.Device)
	if err != nil {
		return err
	}
	var entries []verbs.GIDEntry
	for _, name := range names {
		d, err := c.QueryDevice(name)
		if err != nil {
			return err
		}
		if d.Why != "" && o.Device != "" {
			return fmt.Errorf("device %s has no card: %s", name, d.Why)
		}
		entries = append(entries, d.GIDs...)
	}
	return o.write(out, entries)
}

func (o *gidOptions) write(out io.Writer, entries []verbs.GIDEntry) error {
	lines := make([]gidLine, len(entries))
	for i, e := range entries {
		lines[i] = newGIDLine(e)
	}
	if o.json {
		return json.NewEncoder(out).Encode(lines)
	}
	rows := make([]row, len(lines))
	for i := range lines {
		rows[i] = &lines[i]
	}
	_, err := io.WriteString(out, table([]string{"INDEX", "GID", "TYPE", "IP", "NETDEV", "DEFAULT"}, rows, widthOf(out)))
	return err
}

func (l *gidLine) cells() []string {
	mark := ""
	if l.Default {
		mark = "default"
	}
	return []string{strconv.Itoa(l.Index), l.GID, l.Type, l.Version, l.Interface, mark}
}
